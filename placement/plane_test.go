package placement_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{
	Name:    "placement",
	Prepare: mustertest.Prepare(scheme, installs...),
}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// hub is a namespace of an API server.
type hub struct{ *testkit.Hub }

var scheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme)

var installs = []func(context.Context, client.Client) error{crds.Install, membershipcrds.Install}

// newHub returns a namespace of an in-memory API server that no other test uses.
func newHub(t testing.TB) *hub {
	t.Helper()
	return &hub{testkit.NewMemoryHub(t, scheme, installs...)}
}

// newHubOnPlane returns a namespace of the shared control plane, for tests that depend on the behavior of Kubernetes.
func newHubOnPlane(t testing.TB) *hub {
	t.Helper()
	return &hub{testkit.NewHub(t, plane.ForTest(t).Config(), scheme)}
}

// running is a manager with the controller.
type running struct {
	transport *transport
	stop      func()
}

// setup contains the settings of a manager that a test can change.
type setup struct {
	config    *rest.Config
	options   *manager.Options
	transport *transport
}

// start runs a manager whose cache contains only the namespace. The manager stops at the end of the test at the latest.
func (h *hub) start(o placement.Options, change ...func(*setup)) *running {
	h.T.Helper()
	config := rest.CopyConfig(h.Config)
	r := &running{transport: &transport{}}
	options := manager.Options{
		Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{h.Namespace: {}}},
	}
	for _, f := range change {
		f(&setup{config, &options, r.transport})
	}
	config.Wrap(r.transport.wrap)
	r.stop = mustertest.StartManager(h.T, config, options, func(mgr manager.Manager) error {
		return placement.SetupWithManager(mgr, o)
	})
	return r
}

func (h *hub) create(name string, policy v1alpha1.PlacementPolicy,
	groups ...v1alpha1.DecisionGroup) *v1alpha1.Placement {
	h.T.Helper()
	p := &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}, Spec: v1alpha1.PlacementSpec{Policy: policy,
			DecisionGroups: groups},
	}
	h.Create(p)
	return p
}

func pick(n int32) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(n)}
}

func inRegion(policy v1alpha1.PlacementPolicy, region string) v1alpha1.PlacementPolicy {
	policy.Affinity = &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}},
	}}
	return policy
}

// slices returns the PlacementDecisions of the namespace.
func (h *hub) slices() []v1alpha1.PlacementDecision {
	h.T.Helper()
	var list v1alpha1.PlacementDecisionList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(h.Namespace)))
	return list.Items
}

// chosen returns the clusters of a placement, in the order of its slices.
func (h *hub) chosen(name string) []string {
	h.T.Helper()
	var clusters []string
	for _, slice := range h.slices() {
		if owner := metav1.GetControllerOf(&slice); owner != nil && owner.Name == name {
			for _, d := range slice.Decisions {
				clusters = append(clusters, d.ClusterName)
			}
		}
	}
	return clusters
}

func (h *hub) get(name string) *v1alpha1.Placement {
	h.T.Helper()
	p := &v1alpha1.Placement{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, p))
	return p
}

func (h *hub) change(name string, change func(*v1alpha1.Placement)) {
	h.T.Helper()
	mustertest.Change(h.T, h.Client, &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace,
		Name: name}}, change)
}

// condition returns the condition Scheduled of a placement. Empty: the condition does not exist, or is not about the
// current generation.
func (h *hub) condition(name string) metav1.Condition {
	h.T.Helper()
	p := h.get(name)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionScheduled); c != nil &&
		c.ObservedGeneration == p.Generation {
		return *c
	}
	return metav1.Condition{}
}

// scheduled waits until a placement has been decided with this reason.
func (h *hub) scheduled(reason string, placements ...string) {
	h.T.Helper()
	for _, name := range placements {
		h.Holds(name+" has the reason "+reason, func() bool { return h.condition(name).Reason == reason })
	}
}

// quiet waits until a number has not changed for 700 ms.
func quiet(t testing.TB, number func() int64) {
	t.Helper()
	mustertest.Quiet(t, 700*time.Millisecond, number)
}

func versions(items []v1alpha1.PlacementDecision) map[string]string {
	byName := map[string]string{}
	for _, item := range items {
		byName[item.Name] = string(item.UID) + "@" + item.ResourceVersion
	}
	return byName
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
