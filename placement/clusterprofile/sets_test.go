package clusterprofile_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/clusterprofile"
	"github.com/muster-sdk/muster/tenancy"
)

const setLabel = "multicluster.x-k8s.io/clusterset"

// rules are the rules of namespaces, which the test sets.
type rules struct {
	mu          sync.Mutex
	byNamespace map[string]*tenancy.Rules
	changed     func(string)
}

func (r *rules) Watch(_ context.Context, changed func(string)) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
	return func() {}, nil
}

func (r *rules) Rules(namespace string) *tenancy.Rules {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byNamespace[namespace]
}

func (r *rules) set(namespace string, sets []tenancy.Set, bindings ...tenancy.Binding) {
	for i := range bindings {
		bindings[i].Namespace = namespace
	}
	r.mu.Lock()
	r.byNamespace[namespace] = tenancy.NewRules(namespace, sets, bindings)
	changed := r.changed
	r.mu.Unlock()
	if changed != nil {
		changed(namespace)
	}
}

// environment is a ClusterSet that selects by the label env.
func environment(name string) tenancy.Set {
	return tenancy.Set{Name: name, Selector: labels.SelectorFromSet(labels.Set{"env": name})}
}

// hubWithSets returns a hub in memory whose namespace team belongs to the ClusterSet prod and is bound to it.
func hubWithSets(t *testing.T) (h *hub, r *rules, team string) {
	h = newHub(t, profiles)
	r, team = h.withSets(t)
	return h, r, team
}

// withSets creates the namespace team, which belongs to the ClusterSet prod and is bound to it.
func (h *hub) withSets(t *testing.T) (r *rules, team string) {
	team = h.Namespace + "-team"
	r = &rules{byNamespace: map[string]*tenancy.Rules{}}
	h.options.Tenancy = r
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Labels = team, map[string]string{setLabel: "prod"}
	require.NoError(t, h.Client.Create(t.Context(), namespace))
	r.set(team, []tenancy.Set{environment("prod")}, tenancy.Binding{Name: "ours", Set: "prod"})
	return r, team
}

// inEnvironment returns a change that labels a member.
func inEnvironment(name string) func(*membershipv1alpha1.MemberCluster) {
	return func(m *membershipv1alpha1.MemberCluster) { m.Labels = map[string]string{"env": name} }
}

// profileIn returns the profile of a member in a namespace, or nil if it does not exist.
func (h *hub) profileIn(namespace, name string) *unstructured.Unstructured {
	h.T.Helper()
	profile := object(profiles, namespace, name, map[string]any{})
	err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: namespace, Name: name}, profile)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h.T, err)
	return profile
}

// profilesIn waits until a namespace contains exactly the profiles of these members, complete and for this set.
func (h *hub) profilesIn(namespace, set string, members ...string) {
	h.T.Helper()
	h.Holds("the profiles of ClusterSet "+set, func() bool {
		list := listOf(profiles)
		require.NoError(h.T, h.Client.List(h.T.Context(), list, client.InNamespace(namespace)))
		if len(list.Items) != len(members) {
			return false
		}
		for _, name := range members {
			profile := h.profileIn(namespace, name)
			if profile == nil || !complete(profile) || profile.GetLabels()[setLabel] != set {
				return false
			}
		}
		return true
	})
}

func (h *hub) relabel(name, environment string) {
	h.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, m))
	m.Labels = map[string]string{"env": environment}
	require.NoError(h.T, h.Client.Update(h.T.Context(), m))
}

func (h *hub) labelNamespace(name, set string) {
	h.T.Helper()
	namespace := &corev1.Namespace{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, namespace))
	if namespace.Labels[setLabel] = set; set == "" {
		delete(namespace.Labels, setLabel)
	}
	require.NoError(h.T, h.Client.Update(h.T.Context(), namespace))
}

// TestSets_ProfilesFollowTheSet checks that the namespace of a ClusterSet has the profiles of the accepted members of
// the set and no others, and that the namespace of the fleet has all of them.
func TestSets_ProfilesFollowTheSet(t *testing.T) { testkit.Virtual(t, testSetsProfilesFollowTheSet) }

func testSetsProfilesFollowTheSet(t *testing.T) {
	h, _, team := hubWithSets(t)
	h.member("east", inEnvironment("prod"))
	h.member("west", inEnvironment("dev"))
	h.member("north", inEnvironment("prod"), func(m *membershipv1alpha1.MemberCluster) { m.Spec.Accepted = nil })
	first := h.start()
	h.profilesIn(team, "prod", "east")
	h.requireObject(profiles, "east", complete)
	h.requireObject(profiles, "west", complete)
	require.Empty(t, h.get(profiles, "east").GetLabels()[setLabel], "the namespace of the fleet belongs to no set")

	h.relabel("west", "prod")
	h.profilesIn(team, "prod", "east", "west")
	h.relabel("east", "dev")
	h.profilesIn(team, "prod", "west")
	h.requireObject(profiles, "east", complete)

	first.awaitQuiet(t)
	first.stop()
	require.Empty(t, h.start().awaitQuiet(t), "nothing is written after a restart")
}

// TestSets_AbsenceRemovesNothing checks that profiles stay while the set, the binding or all rules are missing, and
// that they are kept up to date.
func TestSets_AbsenceRemovesNothing(t *testing.T) { testkit.Virtual(t, testSetsAbsenceRemovesNothing) }

func testSetsAbsenceRemovesNothing(t *testing.T) {
	h, r, team := hubWithSets(t)
	h.member("east", inEnvironment("prod"))
	running := h.start()
	h.profilesIn(team, "prod", "east")
	before := h.profileIn(team, "east").GetUID()
	running.awaitQuiet(t)
	const deletion = "delete multicluster.x-k8s.io/clusterprofiles"
	deletions := running.recorder.times(deletion)
	for name, change := range map[string]func(){
		"the set is missing":     func() { r.set(team, nil, tenancy.Binding{Name: "ours", Set: "prod"}) },
		"the binding is missing": func() { r.set(team, []tenancy.Set{environment("prod")}) },
		"the selector is invalid": func() {
			r.set(team, []tenancy.Set{{Name: "prod"}}, tenancy.Binding{Name: "ours", Set: "prod"})
		},
	} {
		change()
		running.awaitQuiet(t)
		h.clock.Step(time.Hour)
		h.property("east", name)
		h.Holds(name, func() bool {
			profile := h.profileIn(team, "east")
			require.NotNil(t, profile, name)
			return property(profile) == name
		})
	}
	require.Equal(t, before, h.profileIn(team, "east").GetUID())
	require.Equal(t, deletions, running.recorder.times(deletion))
}

// TestSets_RequestsRemoveProfiles checks that the deletion of the binding and another label of the namespace remove
// profiles, and that a namespace needs both the label and a binding of the set.
func TestSets_RequestsRemoveProfiles(t *testing.T) {
	testkit.Virtual(t, testSetsRequestsRemoveProfiles)
}

func testSetsRequestsRemoveProfiles(t *testing.T) {
	h, r, team := hubWithSets(t)
	h.member("east", inEnvironment("prod"))
	h.member("west", inEnvironment("dev"))
	running := h.start()
	h.profilesIn(team, "prod", "east")

	r.set(team, []tenancy.Set{environment("prod")}, tenancy.Binding{Name: "ours", Set: "prod", Deleted: true})
	h.profilesIn(team, "prod")
	r.set(team, []tenancy.Set{environment("prod")}, tenancy.Binding{Name: "ours", Set: "prod"})
	h.profilesIn(team, "prod", "east")

	h.labelNamespace(team, "dev")
	h.profilesIn(team, "dev")
	running.awaitQuiet(t)
	require.Nil(t, h.profileIn(team, "west"), "the namespace has no binding of the set")
	both := []tenancy.Set{environment("prod"), environment("dev")}
	r.set(team, both, tenancy.Binding{Name: "a", Set: "prod"}, tenancy.Binding{Name: "b", Set: "dev"})
	h.profilesIn(team, "dev", "west")
	h.labelNamespace(team, "")
	h.profilesIn(team, "")
	h.requireObject(profiles, "east", complete)
	h.requireObject(profiles, "west", complete)
}

// TestSets_OtherExportsStay checks that profiles of another export with the same cluster manager, such as those in a
// former ProfileNamespace, are not changed.
func TestSets_OtherExportsStay(t *testing.T) { testkit.Virtual(t, testSetsOtherExportsStay) }

func testSetsOtherExportsStay(t *testing.T) {
	h, _, team := hubWithSets(t)
	member := h.member("east", inEnvironment("prod"))
	running := h.start()
	h.profilesIn(team, "prod", "east")
	h.requireObject(profiles, "east", complete)
	other := object(profiles, h.Namespace, "east", map[string]any{
		"spec": map[string]any{"clusterManager": map[string]any{"name": clusterprofile.DefaultClusterManager}}})
	other.SetOwnerReferences(h.get(profiles, "east").GetOwnerReferences())
	require.Equal(t, member.UID, other.GetOwnerReferences()[0].UID)
	require.NoError(t, h.Client.Create(t.Context(), other))
	h.labelNamespace(team, "")
	h.profilesIn(team, "")
	running.awaitQuiet(t)
	require.Equal(t, other.GetResourceVersion(), h.profileIn(h.Namespace, "east").GetResourceVersion())
}
