package addon_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// plane is the plane of the tests that need one. One test uses it at a time.
var plane = localplane.NewPool(1, localplane.Options{
	Name:    "addon",
	Prepare: mustertest.Prepare(scheme, installs...),
})

func TestMain(m *testing.M) { mustertest.Main(m, plane.Shared()...) }

// hub is a namespace of a plane, with add-ons and members whose names begin with its name.
type hub struct {
	*testkit.Hub
	memory *apiserver.Server                         // nil: the hub is on a control plane
	wrap   func(http.RoundTripper) http.RoundTripper // wraps the transport of the managers before requests are counted
	manage func(*manager.Options)                    // changes the options of the managers
}

var scheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme, placementv1alpha1.AddToScheme,
	workv1alpha1.AddToScheme)

var installs = []func(context.Context, client.Client) error{crds.Install, membershipcrds.Install, placementcrds.Install,
	workcrds.InstallOnHub}

// newHub returns a hub in memory for one test.
func newHub(t testing.TB) *hub {
	t.Helper()
	s := testkit.Memory(t, scheme, installs...)
	return &hub{Hub: testkit.NewHub(t, s.Admin(), scheme), memory: s}
}

// newHubOnPlane returns a hub on a control plane, for tests that need controllers of Kubernetes.
func newHubOnPlane(t testing.TB) *hub {
	t.Helper()
	h := &hub{Hub: testkit.NewHub(t, plane.ForTest(t).Config(), scheme)}
	t.Cleanup(h.clear)
	return h
}

// clear deletes the add-ons of the test, so that the controllers of other tests do not reconcile them.
func (h *hub) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	release := func(o client.Object) {
		before := o.DeepCopyObject().(client.Object)
		o.SetFinalizers(nil)
		_ = h.Client.Patch(ctx, o, client.MergeFrom(before))
		_ = h.Client.Delete(ctx, o)
	}
	var members v1alpha1.MemberAddonList
	var addons v1alpha1.AddonList
	var clusters membershipv1alpha1.MemberClusterList
	require.NoError(h.T, h.Client.List(ctx, &addons))
	require.NoError(h.T, h.Client.List(ctx, &members))
	require.NoError(h.T, h.Client.List(ctx, &clusters, client.MatchingLabels{"hub": h.Namespace}))
	for i := range addons.Items {
		release(&addons.Items[i])
	}
	for i := range members.Items {
		release(&members.Items[i])
	}
	for i := range clusters.Items {
		release(&clusters.Items[i])
	}
}

// name returns the full name of an add-on or a member of this test.
func (h *hub) name(short string) string { return h.Namespace + "-" + short }

func (h *hub) namespaceOf(member string) string { return "member-" + h.name(member) }

// members creates healthy MemberClusters, each with its namespace.
func (h *hub) members(names ...string) {
	h.T.Helper()
	for _, name := range names {
		testkit.Member(h.T, h.Client, h.name(name), map[string]string{"hub": h.Namespace})
	}
}

func (h *hub) health(name string, status metav1.ConditionStatus) {
	h.T.Helper()
	testkit.Health(h.T, h.Client, h.name(name), status)
}

// choose sets the members that a Placement selects.
func (h *hub) choose(placement string, names ...string) {
	h.T.Helper()
	p := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: placement}}
	h.decide(p, p, metav1.ObjectMeta{
		Namespace: h.Namespace, Labels: map[string]string{placementv1alpha1.PlacementLabel: placement},
	}, names)
}

// chooseClusterScoped writes a ClusterPlacement that has selected members.
func (h *hub) chooseClusterScoped(placement string, names ...string) {
	h.T.Helper()
	p := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Name: placement}}
	h.decide(p, (*placementv1alpha1.ClusterPlacement)(p), metav1.ObjectMeta{
		Namespace: placementv1alpha1.ClusterScopeNamespace,
		Labels:    map[string]string{placementv1alpha1.ClusterPlacementLabel: placement},
	}, names)
}

// decide writes a Placement object with the fields of p, and its PlacementDecisions with some metadata.
func (h *hub) decide(p *placementv1alpha1.Placement, object client.Object, of metav1.ObjectMeta, names []string) {
	h.T.Helper()
	kind, err := h.Client.GroupVersionKindFor(object)
	require.NoError(h.T, err)
	if err := h.Client.Create(h.T.Context(), object); err != nil {
		require.True(h.T, apierrors.IsAlreadyExists(err), err)
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(object), object))
	}
	for i := 0; i*100 < len(names) || i == 0; i++ {
		d := &placementv1alpha1.PlacementDecision{ObjectMeta: *of.DeepCopy()}
		d.Name = fmt.Sprintf("%s%s-%d", of.Name, p.Name, i)
		d.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: placementv1alpha1.GroupVersion.String(), Kind: kind.Kind, Name: p.Name, UID: p.UID,
			Controller: new(true),
		}}
		for _, name := range names[i*100 : min(len(names), i*100+100)] {
			d.Decisions = append(d.Decisions, placementv1alpha1.ClusterDecision{ClusterName: h.name(name), Group: "all"})
		}
		err := h.Client.Create(h.T.Context(), d)
		if apierrors.IsAlreadyExists(err) {
			existing := &placementv1alpha1.PlacementDecision{}
			require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(d), existing))
			existing.Decisions = d.Decisions
			err = h.Client.Update(h.T.Context(), existing)
		}
		require.NoError(h.T, err)
	}
	before := object.DeepCopyObject().(client.Object)
	p.Status.ObservedGeneration, p.Status.DecidedGeneration = p.Generation, p.Generation
	p.Status.SelectedClusters = int32(len(names))
	require.NoError(h.T, h.Client.Status().Patch(h.T.Context(), object, client.MergeFrom(before)))
}

// running is a running manager with the controllers.
type running struct {
	wire *mustertest.RequestCounter
	stop func()
}

// start runs a manager with the controllers. It stops with the test at the latest.
func (h *hub) start(o addon.Options) *running {
	h.T.Helper()
	config := rest.CopyConfig(h.Config)
	r := &running{wire: &mustertest.RequestCounter{}}
	config.Wrap(r.wire.Wrap)
	if h.wrap != nil {
		config.Wrap(h.wrap)
	}
	options := manager.Options{Scheme: scheme, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}}
	if h.manage != nil {
		h.manage(&options)
	}
	r.stop = mustertest.StartManager(h.T, config, options, func(mgr manager.Manager) error {
		return addon.SetupWithManager(mgr, o)
	})
	return r
}

// quiet waits until nothing was written for a while.
func (r *running) quiet(t testing.TB) {
	t.Helper()
	// Longer than the two seconds for which the status of a MemberAddon waits for the answer of its member.
	mustertest.Quiet(t, 2500*time.Millisecond, func() string { return fmt.Sprint(r.wire.Writes()) })
}
