package workset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// plane is used by one test at a time. Tests on another plane, or without one, run in parallel with it.
var plane = localplane.NewPool(1, localplane.Options{Name: "workset", Prepare: mustertest.Prepare(scheme, installs...)})

func TestMain(m *testing.M) { mustertest.Main(m, plane.Shared()...) }

// hub is a namespace of an API server, and members whose names begin with its name.
type hub struct {
	*testkit.Hub
	wrap func(http.RoundTripper) http.RoundTripper // wraps the transport of the managers, before requests are counted
	// clusterScope lets managers observe the namespace of cluster-scoped objects as well.
	clusterScope bool
}

var scheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme, workv1alpha1.AddToScheme)

var installs = []func(context.Context, client.Client) error{crds.Install, membershipcrds.Install,
	workcrds.InstallOnHub}

// newHub returns a hub in memory that only this test uses.
func newHub(t testing.TB) *hub {
	t.Helper()
	return &hub{Hub: testkit.NewMemoryHub(t, scheme, installs...)}
}

// newHubOnPlane returns a namespace of the shared control plane, for tests of the behavior of Kubernetes itself.
func newHubOnPlane(t testing.TB) *hub {
	t.Helper()
	return &hub{Hub: testkit.NewHub(t, plane.ForTest(t).Config(), scheme)}
}

// in returns the hub for a test with another namespace, which exists or is created by the test.
func (h *hub) in(t testing.TB, namespace string) *hub {
	return &hub{Hub: &testkit.Hub{T: t, Client: h.Client, Config: h.Config, Namespace: namespace}}
}

// members creates healthy MemberClusters, each with its namespace.
func (h *hub) members(names ...string) {
	h.T.Helper()
	for _, name := range names {
		m := testkit.Member(h.T, h.Client, h.member(name), map[string]string{"hub": h.Namespace, "name": name})
		h.T.Cleanup(func() {
			_ = h.Client.Delete(context.Background(), m)
		})
	}
}

func (h *hub) member(name string) string { return h.Namespace + "-" + name }

func (h *hub) health(name string, status metav1.ConditionStatus) {
	h.T.Helper()
	testkit.Health(h.T, h.Client, name, status)
}

// running is a manager with the controllers.
type running struct {
	wire *mustertest.RequestCounter
	stop func()
}

// start runs a manager with the controllers of Placements and of WorkSets. It stops at the latest when the test ends.
func (h *hub) start(o workset.Options) *running {
	h.T.Helper()
	o.Readiness = workset.NewReadiness()
	config := rest.CopyConfig(h.Config)
	r := &running{wire: &mustertest.RequestCounter{}}
	config.Wrap(r.wire.Wrap)
	if h.wrap != nil {
		config.Wrap(h.wrap)
	}
	options := manager.Options{
		Scheme: scheme, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{h.Namespace: {}}},
	}
	if h.clusterScope {
		options.Cache.DefaultNamespaces[v1alpha1.ClusterScopeNamespace] = cache.Config{}
	}
	r.stop = mustertest.StartManager(h.T, config, options, func(mgr manager.Manager) error {
		return placement.SetupWithManager(mgr, placement.Options{Clusters: o.Clusters, Ready: o.Readiness})
	}, func(mgr manager.Manager) error { return workset.SetupWithManager(mgr, o) })
	return r
}

// place creates a Placement of the named members of this hub, or of all its members.
func (h *hub) place(name string, members ...string) {
	h.T.Helper()
	policy := v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hub": h.Namespace}}},
	}}}
	if len(members) > 0 {
		policy.Affinity.Required[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: members},
		}
	}
	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec: v1alpha1.PlacementSpec{Policy: policy}}
	require.NoError(h.T, h.Client.Create(h.T.Context(), p))
}

func configMap(name string, data map[string]string) workv1alpha1.Manifest {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": name}, "data": data,
	})
	if err != nil {
		panic(err)
	}
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: text}}
}

// distribute creates a WorkSet for the clusters of a Placement.
func (h *hub) distribute(name, placement string, change func(*v1alpha1.WorkSetSpec),
	manifests ...workv1alpha1.Manifest) {
	h.T.Helper()
	set := &v1alpha1.WorkSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec:       v1alpha1.WorkSetSpec{Placements: []v1alpha1.PlacementReference{{Name: placement}}, Manifests: manifests},
	}
	if change != nil {
		change(&set.Spec)
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), set))
}

func (h *hub) get(name string) *v1alpha1.WorkSet {
	h.T.Helper()
	set := &v1alpha1.WorkSet{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, set))
	return set
}

func (h *hub) change(name string, change func(*v1alpha1.WorkSet)) {
	h.T.Helper()
	mustertest.Change(h.T, h.Client, &v1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}},
		change)
}

// works returns the Works of a WorkSet, by <member>/<name>.
func (h *hub) works(set string) map[string]*workv1alpha1.Work {
	h.T.Helper()
	var list workv1alpha1.WorkList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list,
		client.MatchingLabels{v1alpha1.WorkSetNamespaceLabel: h.Namespace, v1alpha1.WorkSetLabel: set}))
	found := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		member := strings.TrimPrefix(list.Items[i].Namespace, "member-"+h.Namespace+"-")
		found[member+"/"+strings.TrimPrefix(list.Items[i].Name, h.Namespace+".")] = &list.Items[i]
	}
	return found
}

// simulateAgents reports for the members that all Works are applied and available, as long as the test runs.
func (h *hub) simulateAgents(except ...string) (stop func()) {
	return testkit.FollowWorks(h.T, h.Client, func(ctx context.Context, work *workv1alpha1.Work) {
		h.simulateAgent(ctx, work, except)
	}, client.MatchingLabels{v1alpha1.WorkSetNamespaceLabel: h.Namespace})
}

func (h *hub) simulateAgent(ctx context.Context, work *workv1alpha1.Work, except []string) {
	for _, name := range except {
		if work.Namespace == "member-"+h.member(name) {
			return
		}
	}
	before := work.DeepCopy()
	if work.DeletionTimestamp != nil {
		work.Finalizers = nil
		_ = h.Client.Patch(ctx, work, client.MergeFrom(before))
		return
	}
	if work.Status.ObservedGeneration == work.Generation {
		return
	}
	h.reportStatus(ctx, work, metav1.ConditionTrue)
}

// reportStatus reports for a member that a Work is available, or that it has failed.
func (h *hub) reportStatus(ctx context.Context, work *workv1alpha1.Work, available metav1.ConditionStatus) {
	before := work.DeepCopy()
	work.Status.ObservedGeneration = work.Generation
	degraded, message := metav1.ConditionFalse, "1 of 1 applied"
	if available != metav1.ConditionTrue {
		degraded, message = metav1.ConditionTrue, "the ConfigMap shop/web is refused"
	}
	for kind, status := range map[string]metav1.ConditionStatus{
		workv1alpha1.ConditionApplied: available, workv1alpha1.ConditionAvailable: available,
		workv1alpha1.ConditionProgressing: metav1.ConditionFalse, workv1alpha1.ConditionDegraded: degraded,
	} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test",
			ObservedGeneration: work.Generation})
	}
	work.Status.Message = message
	_ = h.Client.Status().Patch(ctx, work, client.MergeFrom(before)) // on a conflict the watch delivers the newer Work
}

func (h *hub) condition(name, kind string) metav1.Condition {
	h.T.Helper()
	set := h.get(name)
	if c := meta.FindStatusCondition(set.Status.Conditions, kind); c != nil && c.ObservedGeneration == set.Generation {
		return *c
	}
	return metav1.Condition{}
}

// cluster returns the entry of a member in the status of a WorkSet.
func (h *hub) cluster(name, member string) v1alpha1.ClusterSummary {
	h.T.Helper()
	for _, c := range h.get(name).Status.Clusters {
		if c.Name == h.member(member) {
			return c
		}
	}
	return v1alpha1.ClusterSummary{}
}

func keys[V any](m map[string]V) string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return fmt.Sprint(sorted(names))
}

// succeeded waits until the current generation of a WorkSet is available on the given number of clusters. The timeout
// is longer than the delay of a reflector whose definition was removed: up to 30 seconds, doubled by jitter.
func (h *hub) succeeded(name string, clusters int32) {
	h.T.Helper()
	var s *v1alpha1.WorkSet
	require.Eventually(h.T, func() bool {
		s = h.get(name)
		return s.Status.ObservedGeneration == s.Generation && s.Status.Rollout.Phase == v1alpha1.PhaseSucceeded &&
			s.Status.Rollout.Revision == s.Status.Revision &&
			s.Status.Counts.Total == clusters && s.Status.Counts.Available == clusters && s.Status.Counts.Updated == clusters &&
			s.Status.Counts.Leaving == 0
	}, 2*time.Minute, 20*time.Millisecond, "want %s to be available on %d clusters", name, clusters)
}

// succeededWhileDegraded is succeeded for a WorkSet with another problem.
func (h *hub) succeededWhileDegraded(name string, clusters int32) {
	h.T.Helper()
	h.succeeded(name, clusters)
}

// quiet waits until writes have stopped.
func (r *running) quiet(t testing.TB) {
	t.Helper()
	mustertest.Quiet(t, 1500*time.Millisecond, func() string { return fmt.Sprint(r.wire.Writes()) })
}

// waitForWatch waits until the controllers of a new manager have begun to list or watch Works.
func (r *running) waitForWatch(t testing.TB, h *hub) {
	t.Helper()
	h.Holds("the manager watches Works", func() bool { return r.wire.Count("GET works") > 0 })
}

func (h *hub) choose(name string, members ...string) {
	h.T.Helper()
	p := &v1alpha1.Placement{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, p))
	before := p.DeepCopy()
	p.Spec.Policy.Affinity.Required[0].LabelSelector.MatchExpressions[0].Values = members
	require.NoError(h.T, h.Client.Patch(h.T.Context(), p, client.MergeFrom(before)))
}

func (h *hub) deletePlacement(name string) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Delete(h.T.Context(),
		&v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}))
}

func deployment(name string, replicas int) workv1alpha1.Manifest {
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"apps/v1","kind":"Deployment",
		"metadata":{"namespace":"shop","name":%q},
		"spec":{"replicas":%d,"selector":{"matchLabels":{"app":%[1]q}},"template":{
			"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"c","image":"web"}]}}}}`, name, replicas)}}
}
