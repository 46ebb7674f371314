package workset_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var tenantScheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
	tenancyv1alpha1.AddToScheme)

// newTenantHub returns a hub in memory that runs the controllers of tenancy, Placements and WorkSets.
func newTenantHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{Hub: testkit.NewMemoryHub(t, tenantScheme, crds.Install, membershipcrds.Install, workcrds.InstallOnHub,
		tenancycrds.Install)}
	h.simulateAgents()
	mustertest.StartManager(t, h.Config, manager.Options{
		Scheme: tenantScheme, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}, func(mgr manager.Manager) error {
		grants, err := tenancy.SetupWithManager(mgr, tenancy.Options{})
		if err != nil {
			return err
		}
		ready := workset.NewReadiness()
		if err := placement.SetupWithManager(mgr, placement.Options{Tenancy: grants, Ready: ready}); err != nil {
			return err
		}
		return workset.SetupWithManager(mgr, workset.Options{Tenancy: grants, Readiness: ready})
	})
	return h
}

func (h *hub) bind(name, set string, change func(
	*tenancyv1alpha1.ClusterSetBindingSpec)) *tenancyv1alpha1.ClusterSetBinding {
	h.T.Helper()
	b := &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: set},
	}
	if change != nil {
		change(&b.Spec)
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), b))
	return b
}

// executors returns the executor of each Work of a WorkSet.
func (h *hub) executors(set string) map[string]string {
	out := map[string]string{}
	for name, w := range h.works(set) {
		if out[name] = "agent"; w.Spec.Executor != nil {
			out[name] = w.Spec.Executor.Namespace + "/" + w.Spec.Executor.Name
		}
	}
	return out
}

func (h *hub) degraded(set, reason string) string {
	h.T.Helper()
	h.Holds(set+" is degraded with the reason "+reason, func() bool {
		return h.condition(set, v1alpha1.ConditionDegraded).Reason == reason
	})
	return h.condition(set, v1alpha1.ConditionDegraded).Message
}

var deployer = tenancyv1alpha1.ServiceAccount{Namespace: "shop", Name: "deployer"}

// TestTenancy_Executor checks that the Works of a namespace have the ServiceAccount of the binding, that a WorkSet with
// another executor reaches no cluster, and that a change of the binding changes the Works.
func TestTenancy_Executor(t *testing.T) { testkit.Virtual(t, testTenancyExecutor) }

func testTenancyExecutor(t *testing.T) {
	h := newTenantHub(t)
	h.members("east")
	b := h.bind("use", tenancyv1alpha1.GlobalClusterSet,
		func(s *tenancyv1alpha1.ClusterSetBindingSpec) { s.ServiceAccount = &deployer })
	h.place("all")
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 1)
	require.Equal(t, map[string]string{"east/web-0": "shop/deployer"}, h.executors("web"))

	h.distribute("same", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Work.Executor = &workv1alpha1.Executor{Namespace: "shop", Name: "deployer"}
	}, configMap("same", nil))
	h.succeeded("same", 1)

	h.distribute("other", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Work.Executor = &workv1alpha1.Executor{Namespace: "kube-system", Name: "admin"}
	}, configMap("other", nil))
	message := h.degraded("other", v1alpha1.ReasonNotAllowed)
	require.Contains(t, message, "spec.work.executor: ClusterSetBinding use allows ServiceAccount shop/deployer "+
		"only, not kube-system/admin")
	require.Empty(t, h.works("other"))

	mustertest.Change(t, h.Client, b, func(b *tenancyv1alpha1.ClusterSetBinding) { b.Spec.ServiceAccount.Name = "reader" })
	h.Holds("the Work has the new executor", func() bool { return h.executors("web")["east/web-0"] == "shop/reader" })
	h.degraded("same", v1alpha1.ReasonNotAllowed)
	require.Equal(t, map[string]string{"east/same-0": "shop/deployer"}, h.executors("same"),
		"a Work that is not allowed any more stays")

	mustertest.Change(t, h.Client, b, func(b *tenancyv1alpha1.ClusterSetBinding) { b.Spec.ServiceAccount = nil })
	h.Holds("the Works have the executors of the WorkSets", func() bool {
		return h.executors("web")["east/web-0"] == "agent" && h.executors("other")["east/other-0"] == "kube-system/admin"
	})
}

// TestTenancy_Kinds checks that a WorkSet with an object of a kind that the binding does not list changes nothing.
func TestTenancy_Kinds(t *testing.T) { testkit.Virtual(t, testTenancyKinds) }

func testTenancyKinds(t *testing.T) {
	h := newTenantHub(t)
	h.members("east")
	b := h.bind("use", tenancyv1alpha1.GlobalClusterSet, func(s *tenancyv1alpha1.ClusterSetBindingSpec) {
		s.Kinds = []tenancyv1alpha1.ObjectKind{{Group: "apps", Kind: "*"}}
	})
	h.place("all")
	h.distribute("web", "all", nil, configMap("web", map[string]string{"color": "blue"}))
	require.Contains(t, h.degraded("web", v1alpha1.ReasonNotAllowed),
		"ClusterSetBinding use does not allow the kinds of these objects in spec.kinds: ConfigMap web")
	require.Empty(t, h.works("web"))

	mustertest.Change(t, h.Client, b, func(b *tenancyv1alpha1.ClusterSetBinding) {
		b.Spec.Kinds = append(b.Spec.Kinds, tenancyv1alpha1.ObjectKind{Kind: "ConfigMap"})
	})
	h.succeeded("web", 1)

	// The kind is not allowed any more: the Work stays as it is, and the next revision does not reach it.
	mustertest.Change(t, h.Client, b, func(b *tenancyv1alpha1.ClusterSetBinding) { b.Spec.Kinds = b.Spec.Kinds[:1] })
	h.degraded("web", v1alpha1.ReasonNotAllowed)
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web",
			map[string]string{"color": "green"})
	})
	h.Holds("the new revision is observed",
		func() bool { s := h.get("web"); return s.Status.ObservedGeneration == s.Generation })
	h.degraded("web", v1alpha1.ReasonNotAllowed)
	require.Contains(t, string(h.works("web")["east/web-0"].Spec.Manifests[0].Raw), "blue")

	mustertest.Change(t, h.Client, b, func(b *tenancyv1alpha1.ClusterSetBinding) { b.Spec.Kinds = nil })
	h.Holds("the new revision arrives", func() bool {
		return strings.Contains(string(h.works("web")["east/web-0"].Spec.Manifests[0].Raw), "green")
	})
}

// TestTenancy_ForgedDecision checks that a PlacementDecision that names a cluster of another tenant causes no Work on
// that cluster.
func TestTenancy_ForgedDecision(t *testing.T) { testkit.Virtual(t, testTenancyForgedDecision) }

func testTenancyForgedDecision(t *testing.T) {
	h := newTenantHub(t)
	h.members("mine", "theirs")
	mine := &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	mine.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "mine"}}
	require.NoError(t, h.Client.Create(t.Context(), mine))
	h.bind("use", "mine", nil)
	h.place("all")
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 1)
	require.Equal(t, map[string]string{"mine/web-0": "agent"}, h.executors("web"))

	p := &v1alpha1.Placement{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: "all"}, p))
	forged := &v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Namespace, Name: "forged",
			Labels:          map[string]string{v1alpha1.PlacementLabel: v1alpha1.LabelValue("all")},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, v1alpha1.GroupVersion.WithKind("Placement"))},
		},
		Decisions: []v1alpha1.ClusterDecision{{ClusterName: h.member("theirs"), Binding: "use"}},
	}
	require.NoError(t, h.Client.Create(t.Context(), forged))
	h.Holds("the forged decision is removed or reported", func() bool {
		err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: "forged"}, forged)
		return apierrors.IsNotFound(err) ||
			h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonNotAllowed
	})
	require.Equal(t, map[string]string{"mine/web-0": "agent"}, h.executors("web"))
}

// TestTenancy_RandomChanges changes sets, bindings and labels at random. After each change, every cluster of a
// decision and every Work is one that the rules of the namespace allow, and each Work has the executor of its binding.
// The Works of a ClusterWorkSet, to which no binding applies, are on all clusters all the time.
func TestTenancy_RandomChanges(t *testing.T) { testkit.Virtual(t, testTenancyRandomChanges) }

func testTenancyRandomChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := newTenantHub(t)
	members := []string{"a", "b", "c", "d"}
	h.members(members...)
	h.place("all")
	h.distribute("web", "all", nil, configMap("web", nil))
	h.simulateAgentsClusterScoped()
	h.placeClusterScoped("platform")
	h.distributeClusterScoped("base", "platform", nil, configMap("base", nil))
	sets := []string{"red", "blue"}
	for _, name := range sets {
		set := &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"color": name}}
		require.NoError(t, h.Client.Create(t.Context(), set))
	}
	for i := range 40 {
		what := h.changeTenants(random, members, sets)
		var last string
		h.Holds(fmt.Sprintf("step %d (%s): decisions and Works are those that the rules allow", i, what), func() bool {
			if problem := h.violations(members); problem != last {
				last = problem
				t.Logf("step %d: %s", i, problem)
			}
			return last == ""
		})
	}
}

// changeTenants makes one random change.
func (h *hub) changeTenants(random *rand.Rand, members, sets []string) string {
	h.T.Helper()
	set := sets[random.IntN(len(sets))]
	binding := client.ObjectKey{Namespace: h.Namespace, Name: "use-" + set}
	switch random.IntN(4) {
	case 0, 1:
		member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.member(members[random.IntN(len(
			members))])}}
		mustertest.Change(h.T, h.Client, member, func(m *membershipv1alpha1.MemberCluster) { m.Labels["color"] = set })
		return member.Name + " is " + set
	case 2:
		b := &tenancyv1alpha1.ClusterSetBinding{}
		if err := h.Client.Get(h.T.Context(), binding, b); err == nil {
			require.NoError(h.T, h.Client.Delete(h.T.Context(), b))
			h.Holds("the binding does not exist", func() bool { return h.Client.Get(h.T.Context(), binding, b) != nil })
			return "binding of " + set + " deleted"
		}
		h.bind(binding.Name, set, func(s *tenancyv1alpha1.ClusterSetBindingSpec) { s.ServiceAccount = &deployer })
		return "binding of " + set + " created"
	default:
		b := &tenancyv1alpha1.ClusterSetBinding{}
		if err := h.Client.Get(h.T.Context(), binding, b); err != nil {
			return "nothing"
		}
		mustertest.Change(h.T, h.Client, b, func(b *tenancyv1alpha1.ClusterSetBinding) {
			b.Spec.ServiceAccount = &tenancyv1alpha1.ServiceAccount{Namespace: "shop", Name: fmt.Sprint("account-",
				random.IntN(3))}
		})
		return "executor of " + set + " changed"
	}
}

// violations returns a difference between the existing objects and the permissions of tenancy, or an empty string.
func (h *hub) violations(members []string) string {
	h.T.Helper()
	grants, err := tenancy.Load(h.T.Context(), h.Client)
	require.NoError(h.T, err)
	want, platform := map[string]string{}, []string{}
	for _, name := range members {
		m := &membershipv1alpha1.MemberCluster{}
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: h.member(name)}, m))
		d := grants.Rules(h.Namespace).Decide(tenancy.Cluster{Labels: labels.Set(m.Labels)})
		if d.Access == tenancy.Allowed {
			want[name+"/web-0"] = d.Limits.ServiceAccount.Namespace + "/" + d.Limits.ServiceAccount.Name
		}
		if tenancy.ClusterScope().MayPlace(tenancy.Cluster{Labels: labels.Set(m.Labels)}) == nil {
			platform = append(platform, name+"/clusterworkset-base-0")
		}
	}
	if got := h.executors("web"); fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Sprintf("the Works are %v, want %v", got, want)
	}
	if got := keys(h.clusterScopedWorks("base")); got != fmt.Sprint(platform) {
		return fmt.Sprintf("the Works of the ClusterWorkSet are %s, want %v", got, platform)
	}
	var decisions v1alpha1.PlacementDecisionList
	require.NoError(h.T, h.Client.List(h.T.Context(), &decisions))
	chosen := map[string]int{}
	for i := range decisions.Items {
		chosen[decisions.Items[i].Namespace] += len(decisions.Items[i].Decisions)
	}
	for namespace, want := range map[string]int{h.Namespace: len(want), v1alpha1.ClusterScopeNamespace: len(platform)} {
		if chosen[namespace] != want {
			return fmt.Sprintf("%d clusters are selected in %s, want %d", chosen[namespace], namespace, want)
		}
	}
	return ""
}

// TestTenancy_SelectionGrant checks that a WorkSet selects objects outside of its namespace only while a SelectionGrant
// for its namespace allows the object, and that the clusters keep their objects when the grant ends.
func TestTenancy_SelectionGrant(t *testing.T) { testkit.Virtual(t, testTenancySelectionGrant) }

func testTenancySelectionGrant(t *testing.T) {
	h := newTenantHub(t)
	h.members("east")
	h.bind("use", tenancyv1alpha1.GlobalClusterSet, nil)
	h.place("all")
	elsewhere := mustertest.Namespace(t, h.Client)
	for _, name := range []string{"ca", "other"} {
		require.NoError(t, h.Client.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: name},
		}))
	}
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{{Kind: "ConfigMap", Namespace: elsewhere, Name: "ca"}}
	})
	require.Contains(t, h.degraded("web", v1alpha1.ReasonSelectionFailed),
		"which is not its own namespace: create a WorkSet there, or ask the hub's administrator for a SelectionGrant")
	require.Empty(t, h.works("web"))

	grant := &tenancyv1alpha1.SelectionGrant{ObjectMeta: metav1.ObjectMeta{Name: "ca"}}
	grant.Spec = tenancyv1alpha1.SelectionGrantSpec{
		Namespaces: []string{"other-namespace"},
		Objects:    []tenancyv1alpha1.SelectableObjects{{Kind: "ConfigMap", Namespace: elsewhere, Names: []string{"ca"}}},
	}
	require.NoError(t, h.Client.Create(t.Context(), grant))
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.AllowEmpty = true })
	h.Holds("the WorkSet is observed", func() bool {
		s := h.get("web")
		return s.Status.ObservedGeneration == s.Generation
	})
	h.degraded("web", v1alpha1.ReasonSelectionFailed)
	require.Empty(t, h.works("web"), "the grant is for another namespace")

	mustertest.Change(t, h.Client, grant, func(g *tenancyv1alpha1.SelectionGrant) {
		g.Spec.Namespaces = []string{h.Namespace}
	})
	h.succeeded("web", 1)
	require.Contains(t, string(h.works("web")["east/web-0"].Spec.Manifests[0].Raw), `"name":"ca"`)

	// Neither another object of the kind nor all of them are granted.
	for name, selector := range map[string]v1alpha1.ResourceSelector{
		"named": {Kind: "ConfigMap", Namespace: elsewhere, Name: "other"}, "every": {Kind: "ConfigMap", Namespace: elsewhere},
		"kind": {Kind: "Secret", Namespace: elsewhere, Name: "ca"}, "scope": {Kind: "Namespace", Name: elsewhere},
	} {
		h.distribute(name, "all", func(s *v1alpha1.WorkSetSpec) { s.Resources = []v1alpha1.ResourceSelector{selector} })
		h.degraded(name, v1alpha1.ReasonSelectionFailed)
		require.Empty(t, h.works(name))
	}

	require.NoError(t, h.Client.Delete(t.Context(), grant))
	h.degraded("web", v1alpha1.ReasonSelectionFailed)
	require.Len(t, h.works("web"), 1, "the clusters keep the objects")
}
