package workset_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestDeliveries checks which clusters have Works of a Placement.
func TestDeliveries(t *testing.T) {
	scheme := mustertest.Scheme(v1alpha1.AddToScheme, workv1alpha1.AddToScheme)
	c := mustertest.Client(t, testkit.Memory(t, scheme, crds.Install, workcrds.InstallOnHub).Admin(), scheme)
	ctx := t.Context()
	create := func(o client.Object) {
		t.Helper()
		require.NoError(t, c.Create(ctx, o))
	}
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	for _, name := range []string{"shop", "other", "member-a", "member-b", "member-c", "member-gone", "elsewhere"} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	manifests := []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config", "namespace": "default"}}`,
	)}}}
	set := func(namespace, name string, placements ...string) *v1alpha1.WorkSet {
		set := &v1alpha1.WorkSet{ObjectMeta: in(namespace, name)}
		set.Spec.Manifests = manifests
		for _, p := range placements {
			set.Spec.Placements = append(set.Spec.Placements, v1alpha1.PlacementReference{Name: p})
		}
		return set
	}
	work := func(namespace, owner string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: in(namespace, strings.ReplaceAll(owner, "/", ".")+"-0")}
		w.Spec.Manifests = manifests
		ownerNamespace, ownerName, _ := strings.Cut(owner, "/")
		w.Labels = map[string]string{v1alpha1.WorkSetNamespaceLabel: ownerNamespace,
			v1alpha1.WorkSetLabel: v1alpha1.LabelValue(ownerName)}
		w.Annotations = map[string]string{v1alpha1.WorkSetAnnotation: owner}
		return w
	}
	create(set("shop", "web", "single"))
	create(set("shop", "shared", "first", "second"))
	create(set("shop", "pair", "left", "right", "replaced"))
	create(set("shop", "unused", "empty"))
	create(set("other", "web", "single"))
	ended := set("shop", "ended", "ended")
	ended.Finalizers = []string{v1alpha1.WorkSetFinalizer}
	create(ended)
	require.NoError(t, c.Delete(ctx, ended))

	naming := func(namespace, placements string) *workv1alpha1.Work {
		w := work(namespace, "shop/pair")
		w.Annotations[v1alpha1.PlacementsAnnotation] = placements
		return w
	}
	second := work("member-a", "shop/pair") // only the first Work of a cluster names Placements
	second.Name += "-second"
	deleted := work("member-c", "shop/web")
	deleted.Finalizers = []string{workv1alpha1.Finalizer}
	for _, w := range []*workv1alpha1.Work{
		work("member-a", "shop/web"), work("elsewhere", "shop/web"), deleted, work("member-b", "other/web"),
		work("member-a", "shop/shared"), work("member-b", "shop/shared"), work("member-c", "shop/shared"),
		work("member-a", "shop/ended"),
		naming("member-a", "left"), second, naming("member-b", "left,right"), naming("member-c", "of-an-earlier-spec"),
	} {
		create(w)
	}
	require.NoError(t, c.Delete(ctx, deleted))
	create(&v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "second-decision-0", Labels: map[string]string{v1alpha1.PlacementLabel: "second"},
		},
		Decisions: []v1alpha1.ClusterDecision{{ClusterName: "b", Reason: v1alpha1.ReasonScheduled}},
	})

	deliveries := workset.Deliveries{Client: c, Live: c, ClusterOf: func(_ context.Context,
		namespace string) (string, error) {
		name, _ := strings.CutPrefix(namespace, "member-")
		if name == "elsewhere" {
			return "", nil
		}
		return name, nil
	}}
	for _, test := range []struct {
		namespace, name string
		want            []string
		reason          string
	}{
		{"shop", "single", []string{"a"}, "Works that are being deleted and namespaces of no cluster are ignored"},
		{"other", "single", []string{"b"}, "a WorkSet with the same name in another namespace is ignored"},
		{"shop", "first", []string{"a", "c"}, "a cluster that the other Placement has selected is ignored"},
		{"shop", "second", []string{"a", "b", "c"}, "the other Placement has no decisions"},
		{"shop", "left", []string{"a", "b", "c"}, "Works that name the Placement, or no Placement of the WorkSet"},
		{"shop", "right", []string{"b", "c"}, "Works that only name another Placement are ignored"},
		{"shop", "ended", []string{}, "the WorkSet is being deleted"},
		{"shop", "empty", []string{}, "the WorkSet has no Works"},
		{"shop", "unknown", []string{}, "no WorkSet refers to the Placement"},
	} {
		got, err := deliveries.ClustersOf(ctx, types.NamespacedName{Namespace: test.namespace, Name: test.name})
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%s/%s: %s", test.namespace, test.name, test.reason)
	}
	deliveries.ClusterOf = func(context.Context, string) (string, error) { return "", errors.New("timeout") }
	_, err := deliveries.ClustersOf(ctx, types.NamespacedName{Namespace: "shop", Name: "single"})
	require.ErrorContains(t, err, "find the cluster of namespace")
}
