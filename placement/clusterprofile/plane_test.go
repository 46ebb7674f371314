package clusterprofile_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/clusterprofile"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "clusterprofile"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

const (
	profiles  = "clusterprofiles"
	decisions = "placementdecisions"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hub is a namespace of an API server for decisions, and the name of another namespace for profiles.
type hub struct {
	*testkit.Hub
	options clusterprofile.Options
	clock   *clocktesting.FakeClock
	settle  func() // waits before a manager stops
}

var scheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme)

// newHub returns a hub in memory with the given definitions, for a test in virtual time.
//
// Its managers stop after they have processed all events: a watch of metadata of controller-runtime never ends if it
// stops while an event is pending, and a test in virtual time fails if a goroutine is left.
func newHub(t *testing.T, defined ...string) *hub {
	t.Helper()
	return newHubOn(testkit.NewMemoryHub(t, scheme, crds.Install, membershipcrds.Install), synctest.Wait, defined...)
}

// newHubOnPlane returns a hub on the control plane with the given definitions, and no other definitions of the exported
// kinds.
func newHubOnPlane(t *testing.T, defined ...string) *hub {
	t.Helper()
	on := testkit.NewHub(t, plane.ForTest(t).Config(), scheme, crds.Install, membershipcrds.Install)
	return newHubOn(on, func() {}, defined...)
}

func newHubOn(on *testkit.Hub, settle func(), defined ...string) *hub {
	on.T.Helper()
	h := &hub{Hub: on, clock: clocktesting.NewFakeClock(start), settle: settle}
	h.options = clusterprofile.Options{ProfileNamespace: h.Namespace + "-profiles", Clock: h.clock}
	for _, name := range []string{profiles, decisions} {
		if slices.Contains(defined, name) {
			h.define(name)
		} else {
			h.undefine(name)
		}
	}
	return h
}

func definition(name string) *unstructured.Unstructured {
	d := &unstructured.Unstructured{Object: map[string]any{}}
	d.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	d.SetName(name + ".multicluster.x-k8s.io")
	return d
}

// define installs a definition, and waits until it is served.
func (h *hub) define(name string) {
	h.T.Helper()
	file, err := os.ReadFile("testdata/" + name + ".yaml")
	require.NoError(h.T, err)
	d := definition(name)
	require.NoError(h.T, yaml.Unmarshal(file, &d.Object))
	require.NoError(h.T, client.IgnoreAlreadyExists(h.Client.Create(h.T.Context(), d)))
	h.Holds(name+" are served", func() bool {
		return h.Client.List(h.T.Context(), listOf(name)) == nil
	})
}

func (h *hub) undefine(name string) {
	h.T.Helper()
	require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(h.T.Context(), definition(name))))
	h.Holds(name+" are gone", func() bool {
		return apierrors.IsNotFound(h.Client.Get(h.T.Context(), client.ObjectKey{Name: definition(name).GetName()},
			definition(name)))
	})
}

func kindOf(resource string) schema.GroupVersionKind {
	kind := map[string]string{profiles: "ClusterProfile", decisions: "PlacementDecision"}[resource]
	return schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: kind}
}

func listOf(resource string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kindOf(resource))
	return list
}

// running is a manager with the export.
type running struct {
	recorder *recorder
	stop     func()
}

// start runs a manager whose own cache contains the namespace only. The manager stops at the latest when the test ends.
func (h *hub) start(change ...func(*rest.Config, *manager.Options)) *running {
	h.T.Helper()
	config, r := rest.CopyConfig(h.Config), &running{recorder: &recorder{}}
	options := manager.Options{
		Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{h.Namespace: {}}},
	}
	for _, f := range change {
		f(config, &options)
	}
	config.Wrap(r.recorder.wrap)
	stop := mustertest.StartManager(h.T, config, options, func(mgr manager.Manager) error {
		return clusterprofile.SetupWithManager(mgr, h.options)
	})
	h.T.Cleanup(h.settle)
	r.stop = func() {
		h.settle()
		stop()
	}
	return r
}

// member creates an accepted MemberCluster. It is deleted when the test ends.
func (h *hub) member(name string, change ...func(*membershipv1alpha1.MemberCluster)) *membershipv1alpha1.MemberCluster {
	h.T.Helper()
	m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Accepted = new(true)
	for _, f := range change {
		f(m)
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), m))
	h.T.Cleanup(func() { require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(context.Background(), m))) })
	h.status(name, func(s *membershipv1alpha1.MemberClusterStatus) {
		s.Version.Kubernetes = "v1.36.3"
		s.Conditions = []metav1.Condition{
			{Type: membershipv1alpha1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "AgentJoined",
				LastTransitionTime: metav1.NewTime(start)},
			{Type: membershipv1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Heartbeating",
				LastTransitionTime: metav1.NewTime(start)},
		}
	})
	return m
}

func (h *hub) status(name string, change func(*membershipv1alpha1.MemberClusterStatus)) {
	h.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, m))
	before := m.DeepCopy()
	change(&m.Status)
	require.NoError(h.T, h.Client.Status().Patch(h.T.Context(), m, client.MergeFrom(before)))
}

// property sets the only property of a member.
func (h *hub) property(name, value string) {
	h.T.Helper()
	h.status(name, func(s *membershipv1alpha1.MemberClusterStatus) {
		s.Properties = []membershipv1alpha1.Property{{Name: "p", Value: value}}
	})
}

// createDecision creates a PlacementDecision of muster.
func (h *hub) createDecision(name string, clusters ...string) *v1alpha1.PlacementDecision {
	h.T.Helper()
	d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.Namespace, Name: name, Labels: map[string]string{v1alpha1.PlacementLabel: "web",
			v1alpha1.DecisionIndexLabel: "0"},
	}}
	for _, cluster := range clusters {
		d.Decisions = append(d.Decisions, v1alpha1.ClusterDecision{ClusterName: cluster, Reason: "Scheduled"})
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), d))
	return d
}

// get returns an exported object, or nil if it does not exist.
func (h *hub) get(resource, name string) *unstructured.Unstructured {
	h.T.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kindOf(resource))
	namespace := map[string]string{profiles: h.options.ProfileNamespace, decisions: h.Namespace}[resource]
	err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h.T, err)
	return u
}

// requireObject waits until an exported object exists that satisfies a condition.
func (h *hub) requireObject(resource, name string,
	condition func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	h.T.Helper()
	var u *unstructured.Unstructured
	h.Holds(resource+" "+name, func() bool {
		u = h.get(resource, name)
		return u != nil && condition(u)
	})
	return u
}

func (h *hub) requireGone(resource, name string) {
	h.T.Helper()
	h.Holds(resource+" "+name+" is gone", func() bool { return h.get(resource, name) == nil })
}
