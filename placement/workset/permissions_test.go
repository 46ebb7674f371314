package workset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// restricted returns the configuration of a user with the roles in the folders rbac of the two controllers and the
// permission to read ConfigMaps in this namespace, and no other permissions.
func (h *hub) restricted() *rest.Config {
	h.T.Helper()
	own, placements := mustertest.ClusterRole(h.T, "rbac/role.yaml"), mustertest.ClusterRole(h.T, "../rbac/role.yaml")
	own.Name, placements.Name = own.Name+"-"+h.Namespace, placements.Name+"-"+h.Namespace
	selected := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "selected"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"list", "watch"}}},
	}
	require.NoError(h.T, mustertest.Grant(h.T.Context(), h.Client, h.Namespace, own, placements, selected))
	return plane.ForTest(h.T).User(h.Namespace)
}

// TestPermissions checks that the role in the folder rbac contains all permissions that the controller needs, except
// for reading the selected objects, and no others.
func TestPermissions(t *testing.T) {
	h := newHubOnPlane(t)
	h.members("a", "b")
	h.place("some", "a", "b")
	h.simulateAgents()
	config := h.restricted()
	own, limited := *h.Hub, *h
	own.Config = rest.CopyConfig(config)
	own.Config.QPS, own.Config.Burst = 1000, 1000
	limited.Hub = &own
	r := limited.start(workset.Options{})
	colors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "colors"},
		Data: map[string]string{"sky": "blue"}}
	require.NoError(t, h.Client.Create(t.Context(), colors))
	h.distribute("web", "some", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{{Kind: "ConfigMap", Name: "colors"}}
		s.RevisionHistoryLimit = new(int32(0))
	})
	h.succeeded("web", 2)
	colors.Data["sky"] = "red"
	require.NoError(t, h.Client.Update(t.Context(), colors))
	h.Holds("Works are updated, and the old revision is deleted", func() bool {
		revisions := h.get("web").Status.Revisions
		return len(revisions) == 1 && revisions[0].Number == 2 &&
			strings.Contains(string(h.works("web")["a/web-0"].Spec.Manifests[0].Raw), "red")
	})
	h.choose("some", "a")
	h.Holds("the Work is deleted", func() bool { return keys(h.works("web")) == "[a/web-0]" })
	h.Holds("an Event is recorded", func() bool {
		var list eventsv1.EventList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(h.Namespace)))
		for i := range list.Items {
			if list.Items[i].Regarding.Name == "web" && list.Items[i].Reason == "RevisionCreated" {
				return true
			}
		}
		return false
	})
	h.distribute("secrets", "some", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{{Kind: "Secret", Name: "s"}}
	})
	h.Holds("the WorkSet reports the missing permission", func() bool {
		c := h.condition("secrets", v1alpha1.ConditionDegraded)
		return c.Reason == v1alpha1.ReasonSelectionFailed && strings.Contains(c.Message, "grant list and watch on secrets")
	})
	for _, name := range []string{"web", "secrets"} {
		require.NoError(t, h.Client.Delete(t.Context(), h.get(name)))
	}
	h.Holds("nothing is left", func() bool {
		var list v1alpha1.WorkSetList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(h.Namespace)))
		return len(list.Items) == 0 && len(h.works("web")) == 0
	})
	r.stop()

	c := mustertest.Client(t, config, scheme)
	in, nothing := metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"}, client.RawPatch("application/merge-patch+json",
		[]byte("{}"))
	for request, err := range map[string]error{
		"create WorkSets":           c.Create(t.Context(), &v1alpha1.WorkSet{ObjectMeta: in}),
		"delete WorkSets":           c.Delete(t.Context(), &v1alpha1.WorkSet{ObjectMeta: in}),
		"write the status of Works": c.Status().Patch(t.Context(), &workv1alpha1.Work{ObjectMeta: in}, nothing),
		"delete all Works":          c.DeleteAllOf(t.Context(), &workv1alpha1.Work{}, client.InNamespace(h.Namespace)),
		"update Works":              c.Update(t.Context(), &workv1alpha1.Work{ObjectMeta: in}),
		"delete all revisions":      c.DeleteAllOf(t.Context(), &v1alpha1.WorkSetRevision{}, client.InNamespace(h.Namespace)),
		"create members": c.Create(t.Context(),
			&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
		"read ConfigMaps elsewhere": c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("kube-system")),
		"read Secrets":              c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(h.Namespace)),
		"write selected objects":    c.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: in}, nothing),
		"read roles":                c.List(t.Context(), &rbacv1.ClusterRoleList{}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: want Forbidden, got %v", request, err)
	}
}

// TestForeignNamespaces checks that a manager with some namespaces in its cache ignores the WorkSets of others, and
// does not reconcile continuously because of their Works.
func TestForeignNamespaces(t *testing.T) { testkit.Virtual(t, testForeignNamespaces) }

func testForeignNamespaces(t *testing.T) {
	theirs := newHub(t)
	ours := &hub{Hub: testkit.NewHub(t, theirs.Config, scheme)}
	for _, h := range []*hub{theirs, ours} {
		h.members("a")
		h.place("all")
		h.simulateAgents()
	}
	first := theirs.start(workset.Options{})
	theirs.distribute("web", "all", nil, configMap("web", nil))
	theirs.succeeded("web", 1)
	first.stop()
	r := ours.start(workset.Options{})
	ours.distribute("web", "all", nil, configMap("web", nil))
	ours.succeeded("web", 1)
	r.quiet(t)
	before, reads := r.wire.Writes(), r.wire.Count("GET worksets")
	work := theirs.works("web")["a/web-0"].DeepCopy()
	theirs.reportStatus(t.Context(), work, metav1.ConditionFalse)
	ours.change("web", func(s *v1alpha1.WorkSet) { s.Spec.RevisionHistoryLimit = new(int32(3)) })
	ours.succeeded("web", 1)
	r.quiet(t)
	require.Contains(t, theirs.works("web"), "a/web-0")
	require.Equal(t, before["DELETE works"], r.wire.Count("DELETE works"))
	require.Equal(t, before["PATCH works"], r.wire.Count("PATCH works"))
	require.Equal(t, reads, r.wire.Count("GET worksets"), "no WorkSet of another namespace is read")
}
