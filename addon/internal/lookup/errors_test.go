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
)

// TestForbidden checks that a forbidden kind is a problem that names the permission to grant, does not affect other
// configurations, and ends when the permission is granted.
func TestForbidden(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name, grant := h.user()
	h.create(h.configMap("a", "blue"))
	r := h.start()
	got := r.find("one", h.ref("configmaps", "a"), h.ref("gadgets.example.com", "a"))
	require.Equal(t, "configmaps "+h.namespace+"/a: the hub's controller is not permitted to read the object: "+
		"grant get, list and watch on configmaps to "+name+
		", in all namespaces of its cache.", got[0].problem.Message)
	require.False(t, got[0].problem.Retried)
	require.Contains(t, got[1].problem.Message, "has no resource gadgets")
	require.Zero(t, r.asked("WATCH configmaps"), "what may not be listed is not watched, or the manager's cache "+
		"would never be in sync")
	asked := r.asked("LIST configmaps")
	require.Equal(t, got, r.find("one", h.ref("configmaps", "a"), h.ref("gadgets.example.com", "a")))
	require.Equal(t, asked, r.asked("LIST configmaps"), "it is not asked again for each user")
	h.pass("it is tried again", func() bool { return r.asked("LIST configmaps") > asked })
	require.Zero(t, r.called("one"), "that it still may not is no news")

	grant(true, "list", "watch")
	h.pass("it may watch, and tries to get more than once", func() bool { return r.asked("GET a") > 1 })
	require.Equal(t, 1, r.called("one"), "a notified user that has not read is not notified again")
	got = r.find("one", h.ref("configmaps", "a"))
	require.Contains(t, got[0].problem.Message, "grant get, list and watch on configmaps to "+name,
		"to list is not to get")
	other := r.find("one", h.ref("configmaps", "a"), h.ref("configmaps", "b"))
	require.Equal(t, []string{"unknown", "missing"}, []string{other[0].is, other[1].is})
	grant(false, "get")
	h.pass("it may get", func() bool { return r.called("one") == 2 })
	require.Equal(t, "ConfigMap blue", r.is("one", h.ref("configmaps", "a")))
}

// TestForbiddenElsewhere checks that permissions in one namespace are not sufficient for an unrestricted cache, and
// that the problem is reported without an unnecessary delay.
func TestForbiddenElsewhere(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	name, grant := h.user()
	grant(false, "get", "list", "watch")
	h.create(h.configMap("a", "blue"))
	r := h.start()
	done := make(chan []found)
	go func() { done <- r.find("one", h.ref("configmaps", "a")) }()
	var got []found
	h.pass("five seconds are the most", func() bool {
		select {
		case got = <-done:
			return true
		default:
			return false
		}
	})
	require.Equal(t, "unknown", got[0].is)
	h.pass("and then the reason is known", func() bool {
		got = r.find("one", h.ref("configmaps", "a"))
		return strings.Contains(got[0].problem.Message, "grant get, list and watch on configmaps to "+name)
	})
}

// TestRestrictedCache checks that a manager with a cache of some namespaces finds objects in these, and reports a
// problem for others.
func TestRestrictedCache(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	_, grant := h.user()
	grant(false, "get", "list", "watch")
	h.create(h.configMap("a", "blue"))
	h.cache.DefaultNamespaces = map[string]cache.Config{h.namespace: {}}
	r := h.start()
	elsewhere := h.ref("configmaps", "a")
	elsewhere.Namespace = "default"
	got := r.find("one", elsewhere, h.ref("configmaps", "a"), h.ref("configmaps", "b"))
	require.Equal(t, []string{"unknown", "ConfigMap blue", "missing"}, []string{got[0].is, got[1].is, got[2].is})
	require.Equal(t, "configmaps default/a: the cache of the hub's manager does not contain namespace default: add "+
		"it to the namespaces of the cache, or reference an object in one of those.",
		got[0].problem.Message)
	require.False(t, got[0].problem.Retried)
}

// TestReadFails checks that a read error is not treated as a missing object, is retried, and does not affect other
// configurations.
func TestReadFails(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	a := h.configMap("a", "blue")
	h.create(a, h.configMap("b", "green"))
	r := h.start()
	broken := func(of string) {
		r.failing(func(request *http.Request) error {
			if strings.HasSuffix(request.URL.Path, of) {
				return errors.New("the wire is cut at port " + fmt.Sprint(time.Now().UnixNano()))
			}
			return nil
		})
	}
	broken("/configmaps/a")
	got := r.find("one", h.ref("configmaps", "a"), h.ref("configmaps", "b"))
	require.Equal(t, []string{"unknown", "ConfigMap green"}, []string{got[0].is, got[1].is})
	require.Contains(t, got[0].problem.Message, "configmaps "+h.namespace+"/a: retrying after a read error: the "+
		"wire is cut")
	require.True(t, got[0].problem.Retried)
	asked := r.asked("GET a")
	h.pass("it is tried again", func() bool { return r.asked("GET a") > asked+2 })
	require.Zero(t, r.called("one"), "that it still fails is no news, whatever the port")
	broken("/none")
	h.pass("and is over", func() bool { return r.called("one") == 1 })
	require.Equal(t, "ConfigMap blue", r.is("one", h.ref("configmaps", "a")))
	require.Equal(t, 1, r.asked("GET b"))

	broken("/configmaps/a")
	change(h, a, func(c *corev1.ConfigMap) { c.Data["value"] = "red" })
	r.hears("one", 1)
	require.Equal(t, "unknown", r.is("one", h.ref("configmaps", "a")), "what it was is not what it is")
}
