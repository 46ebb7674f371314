package addon_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
)

// TestDeliveries checks which clusters have add-ons that a Placement installed.
func TestDeliveries(t *testing.T) {
	scheme := mustertest.Scheme(v1alpha1.AddToScheme)
	c := mustertest.Client(t, testkit.Memory(t, scheme, crds.Install).Admin(), scheme)
	ctx := t.Context()
	create := func(o client.Object) {
		t.Helper()
		require.NoError(t, c.Create(ctx, o))
	}
	for _, name := range []string{"member-a", "member-b", "member-c", "member-d"} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	definition := func(name string, placements ...string) {
		a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name}}
		a.Spec.Install.Type = v1alpha1.InstallPlacements
		for _, p := range placements {
			namespace, name, _ := strings.Cut(p, "/")
			a.Spec.Install.Placements = append(a.Spec.Install.Placements,
				v1alpha1.PlacementInstall{Namespace: namespace, Name: name})
		}
		create(a)
	}
	installed := func(namespace, name, by string) *v1alpha1.MemberAddon {
		m := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if by != "" {
			m.Annotations = map[string]string{v1alpha1.InstalledByAnnotation: by}
		}
		m.Finalizers = []string{v1alpha1.MemberAddonFinalizer}
		create(m)
		return m
	}
	definition("logs", "shop/all", "shop/few")
	definition("metrics", "shop/all")
	installed("member-a", "logs", "shop/all")
	installed("member-b", "logs", "shop/few")
	installed("member-c", "logs", "") // by a user
	installed("member-d", "metrics", "shop/all")
	require.NoError(t, c.Delete(ctx, installed("member-a", "metrics", "shop/all")))
	require.NoError(t, c.Delete(ctx, installed("member-c", "metrics", "shop/all")))

	deliveries := addon.Deliveries{Client: c, Live: c,
		ClusterOf: func(_ context.Context, namespace string) (string, error) {
			return strings.TrimPrefix(namespace, "member-"), nil
		}}
	for placement, want := range map[string][]string{"all": {"a", "d"}, "few": {"b"}, "unknown": {}} {
		got, err := deliveries.ClustersOf(ctx, types.NamespacedName{Namespace: "shop", Name: placement})
		require.NoError(t, err)
		require.Equal(t, want, got, placement)
	}
}
