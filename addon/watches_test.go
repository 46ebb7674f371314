package addon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/addon/internal/lookup"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// indexed is a cache with the indexes of the controllers.
type indexed struct {
	cache.Cache // not used
	client.Client
}

func (i indexed) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return i.Client.Get(ctx, key, into, o...)
}

func (i indexed) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return i.Client.List(ctx, into, o...)
}

func member(name, namespace string) *membershipv1alpha1.MemberCluster {
	m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	m.Status.Namespace = namespace
	return m
}

func addonOf(name string, placements ...string) *v1alpha1.Addon {
	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.Spec.Install.Type = v1alpha1.InstallPlacements
	for _, p := range placements {
		a.Spec.Install.Placements = append(a.Spec.Install.Placements, v1alpha1.PlacementInstall{Namespace: "fleet", Name: p})
	}
	return a
}

func decisionOf(namespace, placement string, clusters ...string) *placementv1alpha1.PlacementDecision {
	d := &placementv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: placement + "-0"}}
	d.OwnerReferences = []metav1.OwnerReference{{Kind: "Placement", Name: placement, UID: types.UID(placement),
		Controller: new(true)}}
	for _, c := range clusters {
		d.Decisions = append(d.Decisions, placementv1alpha1.ClusterDecision{ClusterName: c})
	}
	return d
}

// TestWatches_AddonsOfMember checks that a change of a member enqueues exactly the Addons that it can affect.
func TestWatches_AddonsOfMember(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, placementv1alpha1.AddToScheme(scheme))
	has := func(namespace, name string) client.Object {
		return &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	orphan := decisionOf("fleet", "far", "east")
	orphan.Name, orphan.OwnerReferences = "orphan", nil
	c := &shared{clients: clients{cache: indexed{Client: fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&v1alpha1.Addon{}, placementIndex, placementsOf).WithIndex(&placementv1alpha1.PlacementDecision{},
		clusterIndex, clustersOf).
		WithObjects(
			addonOf("far", "far"), addonOf("logs", "near"), addonOf("manual"), addonOf("metrics", "near", "all"),
			decisionOf("fleet", "near", "east"), decisionOf("fleet", "all", "east", "west"), decisionOf("other", "far", "east"),
			orphan,
			has("member-east", "logs"), has("member-east", "manual"), has("member-north", "metrics"),
		).Build()}}}
	all := []string{"far", "logs", "manual", "metrics"}
	other := member("east", "member-east")
	other.UID = "another"
	for _, row := range []struct {
		name, reason  string
		before, after *membershipv1alpha1.MemberCluster
		want          []string
	}{
		{"is created", "MemberAddons in its namespace were orphans", nil, member("east", "member-east"), all},
		{"is deleted", "MemberAddons in its namespace become orphans", member("east", "member-east"), nil, all},
		{"gets its namespace",
			"MemberAddons in its namespace were orphans", member("east", ""), member("east", "member-east"), all},
		{"is created again", "a deletion and a creation", member("east", "member-east"), other, all},
		{"has MemberAddons and is selected",
			"want each Addon once", member("east", "member-east"), member("east", "member-east"),
			[]string{"logs", "manual", "metrics"}},
		{"is selected", "the Addon is about to be installed", member("west", "member-west"), member("west", "member-west"),
			[]string{"metrics"}},
		{"has a MemberAddon and is not selected",
			"the MemberAddon exists until it is removed", member("north", "member-north"),
			member("north", "member-north"), []string{"metrics"}},
		{"has no MemberAddon and is not selected",
			"no Addon is affected", member("south", "member-south"), member("south", "member-south"), nil},
		{"has no namespace and is selected",
			"a Placement can select the member before", member("west", ""), member("west", ""), []string{"metrics"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, c.addonsAbout(t.Context(), row.before, row.after), row.reason)
		})
	}
}

// TestWatches_ChangesOfMember checks that an add-on is rendered again when its member changes, and not after
// heartbeats.
func TestWatches_ChangesOfMember(t *testing.T) {
	type cluster = *membershipv1alpha1.MemberCluster
	condition := func(kind string) func(cluster) {
		return func(m cluster) {
			meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
				Reason: "Test"})
		}
	}
	for _, row := range []struct {
		name                 string
		change               func(cluster)
		selection, manifests bool
	}{
		{"nothing", func(cluster) {}, false, false},
		{"labels", func(m cluster) { m.Labels = map[string]string{"zone": "eu"} }, true, true},
		{"annotations", func(m cluster) { m.Annotations = map[string]string{"zone": "eu"} }, false, true},
		{"claim", func(m cluster) { m.Spec.Claim = "ab" }, false, true},
		{"version", func(m cluster) { m.Status.Version.Kubernetes = "v1.36.3" }, false, true},
		{"properties", func(m cluster) {
			m.Status.Properties = []membershipv1alpha1.Property{{Name: "cloud", Value: "west"}}
		}, false, true},
		{"served kinds", func(m cluster) {
			m.Status.APIs = []membershipv1alpha1.ServedAPIs{{GroupVersion: "v1", Kinds: []string{"Pod"}}}
		}, false, true},
		{"joined", condition(membershipv1alpha1.ConditionJoined), true, true},
		{"healthy", condition(membershipv1alpha1.ConditionHealthy), true, true},
		{"leaves", func(m cluster) { m.Spec.State = membershipv1alpha1.StateLeave }, true, true},
		{"namespace", func(m cluster) { m.Status.Namespace = "another" }, true, true},
		{"another member with this name", func(m cluster) { m.UID = "another" }, true, true},
		{"resources", func(m cluster) {
			m.Status.Resources.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("7")}
		}, false, false},
		{"heartbeats", func(m cluster) {
			m.Status.Agents = []membershipv1alpha1.AgentStatus{{Type: "Membership", LastHeartbeat: new(metav1.NowMicro())}}
		}, false, false},
		{"expiration of the credential",
			func(m cluster) { m.Status.CredentialExpirationTime = new(metav1.Now()) }, false, false},
	} {
		before, after := member("east", "member-east"), member("east", "member-east")
		row.change(after)
		require.Equal(t, row.selection, affectsSelection(before, after), row.name)
		require.Equal(t, row.manifests, affectsManifests(before, after), row.name)
	}
}

// known is a cache of one Addon, its Placement and all members.
type known struct {
	cache.Cache
	addon        *v1alpha1.Addon
	placement    *placementv1alpha1.Placement
	decisions    []placementv1alpha1.PlacementDecision
	members      []membershipv1alpha1.MemberCluster
	memberAddons []v1alpha1.MemberAddon
}

func (k *known) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *v1alpha1.Addon:
		k.addon.DeepCopyInto(o)
	case *placementv1alpha1.Placement:
		k.placement.DeepCopyInto(o)
	}
	return nil
}

func (k *known) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch o := into.(type) {
	case *membershipv1alpha1.MemberClusterList:
		o.Items = append(o.Items, k.members...)
	case *v1alpha1.MemberAddonList:
		o.Items = append(o.Items, k.memberAddons...)
	case *placementv1alpha1.PlacementDecisionList:
		o.Items = append(o.Items, k.decisions...)
	}
	return nil
}

// BenchmarkLook reconciles an Addon with 1,000 members, as after each change of one of them.
func BenchmarkLook(b *testing.B) {
	k := &known{addon: addonOf("logs", "all")}
	k.placement = &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "all", UID: "all"}}
	for i := range 1000 {
		name := fmt.Sprintf("m%04d", i)
		m := *member(name, "member-"+name)
		for _, kind := range []string{membershipv1alpha1.ConditionJoined, membershipv1alpha1.ConditionHealthy} {
			meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
				Reason: "Test"})
		}
		k.members = append(k.members, m)
		if i%100 == 0 {
			k.decisions = append(k.decisions, *decisionOf("fleet", "all"))
		}
		d := &k.decisions[i/100]
		d.Decisions = append(d.Decisions, placementv1alpha1.ClusterDecision{ClusterName: name})
		k.memberAddons = append(k.memberAddons,
			v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: m.Status.Namespace, Name: "logs",
				Annotations: map[string]string{v1alpha1.InstalledByAnnotation: "fleet/all"}}})
	}
	k.placement.Status.SelectedClusters = 1000
	c := &shared{clients: clients{cache: k}, state: newSharedState(), agents: map[string]Agent{},
		cached: cached{wrote: map[string]time.Time{}}}
	c.Clock = clocktesting.NewFakePassiveClock(time.Now())
	c.state.memberChanged = func(types.NamespacedName) {}
	c.state.addonChanged = func(string) {}
	for i := range k.memberAddons {
		c.state.setMember(client.ObjectKeyFromObject(&k.memberAddons[i]), memberState{})
	}
	var err error
	c.configs, err = lookup.New(lookup.Options{Cache: k, Live: k, Mapper: meta.NewDefaultRESTMapper(nil),
		Changed: func(types.NamespacedName) {}})
	require.NoError(b, err)
	for b.Loop() {
		l := &addonReconciliation{addons: addons{c}, addon: k.addon, now: c.Clock.Now()}
		for _, step := range []func(context.Context) error{l.observe, l.act, l.roll} {
			require.NoError(b, step(b.Context()))
		}
		require.Len(b, l.plan.Decisions, 1000)
	}
}
