package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// TestProvider_Tenancy checks that the provider of a namespace has only the members that bindings of the namespace
// grant, and that a member is disengaged when the permission ends.
func TestProvider_Tenancy(t *testing.T) {
	scheme := mustertest.Scheme(v1alpha1.AddToScheme, placementv1alpha1.AddToScheme, tenancyv1alpha1.AddToScheme)
	h := &hub{Hub: testkit.NewMemoryHub(t, scheme, membershipcrds.Install, placementcrds.Install, tenancycrds.Install)}
	h.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.ConnectionNamespace}})
	var grants *tenancy.Grants
	mustertest.StartManager(t, h.Config, manager.Options{
		Scheme: scheme, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}, func(mgr manager.Manager) (err error) {
		if grants, err = tenancy.SetupWithManager(mgr, tenancy.Options{}); err != nil {
			return err
		}
		h.fleet, err = fleet.SetupWithManager(mgr, fleet.Options{ProbeInterval: 150 * time.Millisecond})
		return err
	})
	p := fleet.NewProvider[clusterName, aware](h.fleet, fleet.ProviderOptions{Tenancy: grants, Namespace: h.Namespace})
	many, ended := &managerOfMany{engaged: make(chan engagement, 10)}, make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); require.NoError(t, <-ended) }()
	go func() { ended <- p.Start(ctx, many) }()

	for name, uid := range map[string]string{"mine": uidA, "theirs": uidB} {
		h.member(name, newFake(t, uid).data())
		h.joined(name, metav1.ConditionTrue)
		h.reachable(name, v1alpha1.ReasonReachable)
	}
	requireNotFound := func(name clusterName) {
		t.Helper()
		_, err := p.Get(ctx, name)
		require.ErrorIs(t, err, fleet.ErrClusterNotFound)
	}
	requireNotFound("mine")
	require.Empty(t, many.engaged, "the namespace has no binding")

	set := &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ours"}}
	h.Create(set)
	binding := &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "use"},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: "mine"},
	}
	h.Create(binding)
	label := func(team string) {
		h.change("mine", func(m *v1alpha1.MemberCluster) { m.Labels = map[string]string{"team": team} })
	}
	engaged := func() engagement {
		t.Helper()
		select {
		case e := <-many.engaged:
			require.Equal(t, clusterName("mine"), e.name)
			return e
		case <-time.After(maxFailures):
			t.Fatal("no member is engaged")
			return engagement{}
		}
	}
	requireDisengaged := func(e engagement) {
		t.Helper()
		select {
		case <-e.ctx.Done():
		case <-time.After(maxFailures):
			t.Fatal("the member stays engaged")
		}
		h.Eventually("the member is not found", func() error {
			_, err := p.Get(ctx, "mine")
			return orError(errors.Is(err, fleet.ErrClusterNotFound), "%v", err)
		})
	}
	label("ours")
	e := engaged()
	requireNotFound("theirs")

	label("other")
	requireDisengaged(e)
	label("ours")
	e = engaged()
	require.NoError(t, h.Client.Delete(ctx, binding))
	requireDisengaged(e)
	require.Empty(t, many.engaged)
}

// TestProvider_TenancyWithoutNamespace checks that a provider with only one of both options engages no member.
func TestProvider_TenancyWithoutNamespace(t *testing.T) {
	for _, options := range []fleet.ProviderOptions{{Namespace: "shop"}, {Tenancy: &tenancy.Grants{}}} {
		p := fleet.NewProvider[clusterName, aware](nil, options)
		require.ErrorContains(t, p.Start(t.Context(), nil), "Tenancy and Namespace require each other")
	}
}
