package addon_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// role returns the ClusterRole in the folder rbac.
func role(t testing.TB) *rbacv1.ClusterRole {
	t.Helper()
	return mustertest.ClusterRole(t, "rbac/role.yaml")
}

// restricted returns the client configuration of a user with exactly the permissions in the folder rbac.
func (h *hub) restricted() *rest.Config {
	h.T.Helper()
	role := role(h.T)
	role.Name += "-" + h.Namespace
	require.NoError(h.T, mustertest.Grant(h.T.Context(), h.Client, h.Namespace, role))
	config := plane.ForTest(h.T).User(h.Namespace)
	config.QPS, config.Burst = 1000, 1000
	return config
}

// verbs records the verbs and resources of requests of a client.
type verbs struct {
	mu        sync.Mutex
	done      map[string]bool
	forbidden []string
}

func (v *verbs) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		a := mustertest.AttributesOf(r)
		if a.Verb == "watch" {
			v.record(a.Resource + " list") // for servers without streaming lists
		}
		response, err := next.RoundTrip(r)
		if a.Group != "" || a.Resource == "namespaces" && a.Verb == "get" {
			v.record(a.Resource + " " + a.Verb)
		}
		if err == nil && response.StatusCode == http.StatusForbidden {
			v.mu.Lock()
			v.forbidden = append(v.forbidden, a.Resource+" "+a.Verb)
			v.mu.Unlock()
		}
		return response, err
	})
}

func (v *verbs) record(done string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done[done] = true
}

// TestPermissions checks that the role in the folder rbac is sufficient for the controllers, and that all of it is
// necessary.
func TestPermissions(t *testing.T) {
	h := newHubOnPlane(t)
	h.members("a", "b")
	h.choose("some", "a")
	h.choose("all", "a", "b")
	members := h.runAgents()
	config := h.restricted()
	own, as, used := *h.Hub, *h, &verbs{done: map[string]bool{}}
	own.Config = config
	as.Hub, as.wrap = &own, used.wrap
	r := as.start(addon.Options{Agents: []addon.Agent{cleaner{echo{h.name("code")}}}})
	h.color("colors", "blue")
	h.installed("code", func(s *v1alpha1.AddonSpec) {
		within(10, h.byPlacement("some"))(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs"}}
		s.Install.Placements[0].Configs = []v1alpha1.ConfigReference{h.reference("colors")}
	}, "a")
	plain := h.installed("plain", h.templated("all", h.template("plain")), "a", "b")
	h.color("colors", "red")
	h.Holds("the new color is assigned", func() bool { return h.colorOf("code", "a") == "red" })
	code := h.get("code")
	before := code.DeepCopy()
	code.Spec.Install.Placements = append(code.Spec.Install.Placements[:0:0], *code.Spec.Install.Placements[0].DeepCopy())
	code.Spec.Install.Placements[0].Name = "all"
	// The controller can write the status concurrently.
	require.NoError(t, h.Client.Patch(t.Context(), code, client.MergeFrom(before)))
	h.Holds("the MemberAddon is annotated", func() bool {
		return strings.HasSuffix(h.memberAddon("code", "a").Annotations[v1alpha1.InstalledByAnnotation], "/all") &&
			isTrue(h.memberAddon("code", "b"), v1alpha1.ConditionAvailable)
	})
	members.stopAgent("b")
	h.health("b", metav1.ConditionUnknown)
	for _, a := range []*v1alpha1.Addon{code, plain} {
		require.NoError(t, h.Client.Delete(t.Context(), a))
	}
	h.Holds("the removal is forced", func() bool { return h.isDeleted(code) && len(h.works("code", "b")) == 0 })
	h.Holds("an Event is recorded", func() bool {
		return h.countEvents("code", "b", v1alpha1.ReasonDeadlineExceeded) == 1
	})
	r.stop()

	granted := map[string]bool{}
	for _, rule := range role(t).Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[resource+" "+verb] = true
			}
		}
	}
	used.mu.Lock()
	defer used.mu.Unlock()
	require.Empty(t, used.forbidden)
	used.done["events patch"] = true // for Events that are repeated within minutes
	require.Equal(t, fmt.Sprint(slices.Sorted(maps.Keys(granted))), fmt.Sprint(slices.Sorted(maps.Keys(used.done))))

	c := mustertest.Client(t, config, scheme)
	in, emptyPatch := metav1.ObjectMeta{Namespace: h.namespaceOf("a"), Name: "x"},
		client.RawPatch("application/merge-patch+json", []byte("{}"))
	for action, err := range map[string]error{
		"create Addons":             c.Create(t.Context(), &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "x"}}),
		"delete Addons":             c.Delete(t.Context(), &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "x"}}),
		"delete all MemberAddons":   c.DeleteAllOf(t.Context(), &v1alpha1.MemberAddon{}, client.InNamespace(in.Namespace)),
		"write the status of Works": c.Status().Patch(t.Context(), &workv1alpha1.Work{ObjectMeta: in}, emptyPatch),
		"update Works":              c.Update(t.Context(), &workv1alpha1.Work{ObjectMeta: in}),
		"write configurations":      c.Patch(t.Context(), &v1alpha1.AddonConfig{ObjectMeta: in}, emptyPatch),
		"read Secrets":              c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(in.Namespace)),
		"read ConfigMaps":           c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(in.Namespace)),
		"read roles":                c.List(t.Context(), &rbacv1.ClusterRoleList{}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", action, err)
	}
}
