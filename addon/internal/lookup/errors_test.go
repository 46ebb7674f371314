package lookup_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/muster-sdk/muster/internal/testkit"
)

// TestFind_ForbiddenKind checks that a forbidden kind is a problem that names the permission to grant, does not affect
// other configurations, and ends when the permission is granted.
func TestFind_ForbiddenKind(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	name, grant := h.user()
	h.Create(h.configMap("a", "blue"))
	r := h.start()
	got := r.find("one", h.ref("configmaps", "a"), h.ref("gadgets.example.com", "a"))
	require.Equal(t, "configmaps "+h.Namespace+"/a: the hub's controller is not permitted to read the object: "+
		"grant get, list and watch on configmaps to "+name+
		", in all namespaces of its cache.", got[0].problem.Message)
	require.False(t, got[0].problem.Retried)
	require.Contains(t, got[1].problem.Message, "has no resource gadgets")
	require.Zero(t, r.requestsOf("WATCH configmaps"), "a kind that must not be listed must not be watched, or the cache "+
		"of the manager would never be synchronized")
	before := r.requestsOf("LIST configmaps")
	require.Equal(t, got, r.find("one", h.ref("configmaps", "a"), h.ref("gadgets.example.com", "a")))
	require.Equal(t, before, r.requestsOf("LIST configmaps"), "want no additional list for another Find")
	h.pass("the list is retried", func() bool { return r.requestsOf("LIST configmaps") > before })
	require.Zero(t, r.called("one"), "want no notification while the permission is missing")

	grant(true, "list", "watch")
	h.pass("the list is permitted, and reads are retried", func() bool { return r.requestsOf("GET a") > 1 })
	require.Equal(t, 1, r.called("one"), "a notified user that has not read must not be notified again")
	got = r.find("one", h.ref("configmaps", "a"))
	require.Contains(t, got[0].problem.Message, "grant get, list and watch on configmaps to "+name,
		"permission to get is missing")
	other := r.find("one", h.ref("configmaps", "a"), h.ref("configmaps", "b"))
	require.Equal(t, []string{"unknown", "missing"}, []string{other[0].value, other[1].value})
	grant(false, "get")
	h.pass("reads are permitted", func() bool { return r.called("one") == 2 })
	require.Equal(t, "ConfigMap blue", r.value("one", h.ref("configmaps", "a")))
}

// TestFind_PermissionInOneNamespace checks that permissions in one namespace are not sufficient for an unrestricted
// cache, and that the problem is reported without an unnecessary delay.
func TestFind_PermissionInOneNamespace(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	name, grant := h.user()
	grant(false, "get", "list", "watch")
	h.Create(h.configMap("a", "blue"))
	r := h.start()
	done := make(chan []found)
	go func() { done <- r.find("one", h.ref("configmaps", "a")) }()
	var got []found
	h.pass("Find returns within five seconds", func() bool {
		select {
		case got = <-done:
			return true
		default:
			return false
		}
	})
	require.Equal(t, "unknown", got[0].value)
	h.pass("the problem names the missing permission", func() bool {
		got = r.find("one", h.ref("configmaps", "a"))
		return strings.Contains(got[0].problem.Message, "grant get, list and watch on configmaps to "+name)
	})
}

// TestFind_RestrictedCache checks that a manager with a cache of some namespaces finds objects in these, and reports a
// problem for others.
func TestFind_RestrictedCache(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	_, grant := h.user()
	grant(false, "get", "list", "watch")
	h.Create(h.configMap("a", "blue"))
	h.cache.DefaultNamespaces = map[string]cache.Config{h.Namespace: {}}
	r := h.start()
	elsewhere := h.ref("configmaps", "a")
	elsewhere.Namespace = "default"
	got := r.find("one", elsewhere, h.ref("configmaps", "a"), h.ref("configmaps", "b"))
	require.Equal(t, []string{"unknown", "ConfigMap blue", "missing"}, []string{got[0].value, got[1].value, got[2].value})
	require.Equal(t, "configmaps default/a: the cache of the hub's manager does not contain namespace default: add "+
		"it to the namespaces of the cache, or reference an object in one of those.",
		got[0].problem.Message)
	require.False(t, got[0].problem.Retried)
}

// TestFind_ReadErrors checks that a read error is not treated as a missing object, is retried, and does not affect
// other configurations.
func TestFind_ReadErrors(t *testing.T) { testkit.Virtual(t, testFindReadErrors) }

func testFindReadErrors(t *testing.T) {
	h := newHub(t)
	a := h.configMap("a", "blue")
	h.Create(a, h.configMap("b", "green"))
	r := h.start()
	failReads := func(suffix string) {
		r.failing(func(request *http.Request) error {
			if strings.HasSuffix(request.URL.Path, suffix) {
				return errors.New("the wire is cut at port " + fmt.Sprint(time.Now().UnixNano()))
			}
			return nil
		})
	}
	failReads("/configmaps/a")
	got := r.find("one", h.ref("configmaps", "a"), h.ref("configmaps", "b"))
	require.Equal(t, []string{"unknown", "ConfigMap green"}, []string{got[0].value, got[1].value})
	require.Contains(t, got[0].problem.Message, "configmaps "+h.Namespace+"/a: retrying after a read error: the "+
		"wire is cut")
	require.True(t, got[0].problem.Retried)
	before := r.requestsOf("GET a")
	h.pass("the read is retried", func() bool { return r.requestsOf("GET a") > before+2 })
	require.Zero(t, r.called("one"), "want no notification while reads fail, also with different errors")
	failReads("/none")
	h.pass("reads succeed again", func() bool { return r.called("one") == 1 })
	require.Equal(t, "ConfigMap blue", r.value("one", h.ref("configmaps", "a")))
	require.Equal(t, 1, r.requestsOf("GET b"))

	failReads("/configmaps/a")
	change(h, a, func(c *corev1.ConfigMap) { c.Data["value"] = "red" })
	r.waitForCall("one", 1)
	require.Equal(t, "unknown", r.value("one", h.ref("configmaps", "a")), "want no outdated object after a read error")
}
