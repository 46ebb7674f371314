package workset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	memberagent "github.com/muster-sdk/muster/membership/agent"
	membershiphub "github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/leave"
)

// TestJoined runs members that have joined, with all components of a product. One manager runs the hub's controllers of
// members, Placements and WorkSets. In each agent, a companion applies the Works with the credential from the hub. One
// agent stops sending heartbeats, and one member leaves.
func TestJoined(t *testing.T) { testkit.Virtual(t, testJoined) }

func testJoined(t *testing.T) {
	size := testkit.WithoutRace(20, 10)
	chosen := size / 2
	j := &joined{hollows: newHollowsInMemory(t, size), stores: map[string]*testkit.MemoryStore{}}
	var w traffic
	w.reset()
	stop := j.control(t, j.Namespace, &w, nil, func(mgr manager.Manager) error {
		return membershiphub.SetupWithManager(mgr, membershiphub.Options{Gates: []membership.LeaveGate{leave.Gate(j.Client)},
			AgentRules: agent.HubRules(), Server: j.memory.URL(), CA: j.memory.CertificateAuthority()})
	})
	j.join()

	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: "some"}}
	p.Spec.Policy = v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(chosen))}
	p.Spec.Failover = &v1alpha1.FailoverPolicy{}
	require.NoError(t, j.Client.Create(t.Context(), p))
	j.distribute("web", "some", nil, configMap("web", map[string]string{"color": "blue"}))
	j.availableOn("all selected members have the object", chosen)
	first := j.withWork()

	silent := first[0]
	j.stopAgent(silent)
	j.wait("the hub adds a taint", func() bool {
		return slices.ContainsFunc(j.cluster(silent).Spec.Taints, func(t membershipv1alpha1.Taint) bool {
			return t.Key == membership.TaintUnreachable
		})
	})
	j.wait("another member replaces the silent one", func() bool {
		now := j.withWork()
		return len(now) == chosen && !slices.Contains(now, silent)
	})
	require.Contains(t, j.dataOf("web"), silent, "an unreachable member keeps the object")
	j.startAgent(silent)
	j.availableOn("the agent deletes the object when it runs again", chosen)
	require.NotContains(t, j.dataOf("web"), silent)

	j.leave(first[1], membershipv1alpha1.DeleteResources)
	require.NotContains(t, j.dataOf("web"), first[1], "the member leaves after its objects are deleted")
	j.availableOn("another member replaces the one that left", chosen)

	// The policy of the leave applies, whatever the WorkSet specifies for clusters that are not selected any more.
	orphaned := first[2:5]
	for _, name := range orphaned {
		j.leave(name, membershipv1alpha1.OrphanResources)
	}
	j.wait("other members replace those that left", func() bool { return len(j.withWork()) == chosen })
	for _, name := range orphaned {
		require.NoError(t, j.members.Get(t.Context(), client.ObjectKey{Namespace: ownCluster{member: name}.namespace(),
			Name: "web"}, &corev1.ConfigMap{}))
	}

	// The Works of the other members were not written again, and the gate deletes the Works of leaving members.
	n := w.counts()
	require.Equal(t, []int{chosen + 5, 1, 1}, []int{n["POST works"], n["PATCH works"], n["DELETE works"]},
		"the Work gets the request before its deletion")

	require.NoError(t, j.Client.Delete(t.Context(), j.get("web")))
	j.wait("all members delete the objects", func() bool {
		return len(j.dataOf("web")) == 0 && len(j.observed.all()) == 0
	})
	stop()
}

// joined are members that have joined.
type joined struct {
	*hollows

	bootstrap *registration.Bootstrap
	stores    map[string]*testkit.MemoryStore
}

// join lets all members join with one token.
func (j *joined) join() {
	j.T.Helper()
	token := &membershipv1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace,
		Name: "fleet"}}
	token.Spec.AutoAccept = true
	j.wait("the namespace of the tokens exists", func() bool {
		return client.IgnoreAlreadyExists(j.Client.Create(j.T.Context(), token)) == nil
	})
	j.wait("the token has a credential", func() bool {
		var secret corev1.Secret
		if err := j.Client.Get(j.T.Context(), client.ObjectKeyFromObject(token), &secret); err != nil {
			return false
		}
		var err error
		j.bootstrap, err = registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
		return err == nil
	})
	for _, name := range j.names {
		m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Spec = membershipv1alpha1.MemberClusterSpec{Accepted: new(true), ClusterID: "id-" + name, HeartbeatPeriodSeconds: 5}
		require.NoError(j.T, j.Client.Create(j.T.Context(), m))
		j.stores[name] = &testkit.MemoryStore{}
		j.startAgent(name)
		// One after the other: the hub sends requests while it holds a mutex, which stops the virtual time for others.
		j.wait(name+" has joined", func() bool {
			return meta.IsStatusConditionTrue(j.cluster(name).Status.Conditions, membershipv1alpha1.ConditionHealthy)
		})
	}
}

func (j *joined) cluster(name string) *membershipv1alpha1.MemberCluster {
	j.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(j.T, j.Client.Get(j.T.Context(), client.ObjectKey{Name: name}, m))
	return m
}

// leave requests the leave of a member, and waits until it has left.
func (j *joined) leave(name string, resources membershipv1alpha1.ResourcePolicy) {
	j.T.Helper()
	m := j.cluster(name)
	before := m.DeepCopy()
	m.Spec.Leave.Resources = resources
	require.NoError(j.T, j.Client.Patch(j.T.Context(), m, client.MergeFrom(before)))
	require.NoError(j.T, j.Client.Delete(j.T.Context(), m))
	j.wait(name+" leaves", func() bool {
		return apierrors.IsNotFound(j.Client.Get(j.T.Context(), client.ObjectKey{Name: name}, m))
	})
}

// startAgent runs the agent of a member, which continues with the state of its last run.
func (j *joined) startAgent(name string) {
	j.T.Helper()
	works := memberagent.CompanionFunc("works", func(ctx context.Context, hub memberagent.Hub) error {
		a, err := agent.New(agent.Options{Hub: hub.Config, Namespace: hub.Member.Namespace, Member: j.clusterOf(name),
			HubName: name})
		if err != nil {
			return err
		}
		return a.Start(ctx)
	})
	cleaner, err := agent.NewCleaner(agent.Options{Member: j.clusterOf(name), HubName: name})
	require.NoError(j.T, err)
	options := memberagent.Options{
		Name: name, ClusterID: "id-" + name, Member: j.shared, Store: j.stores[name],
		Bootstrap: memberagent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
			return j.bootstrap, nil
		}),
		HubConfig:  func(config *rest.Config) { config.Dial = j.memory.DialContext },
		Companions: []memberagent.Companion{works}, Cleaners: []membership.LeaveGate{leave.Cleaner(cleaner.Clean)},
	}
	mgr := mustertest.Manager(j.T, rest.CopyConfig(j.shared), manager.Options{Scheme: scheme},
		func(mgr manager.Manager) error {
			return memberagent.SetupWithManager(mgr, options)
		})
	j.runAgent(name, func(ctx context.Context) error {
		if err := mgr.Start(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
}

// withWork returns the members that have a Work which is not being deleted.
func (j *joined) withWork() (names []string) {
	works := j.observed.of(j.Namespace)
	for _, name := range j.names {
		for _, w := range works {
			if w.Namespace == onHub(name) && w.DeletionTimestamp == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// availableOn waits until the given number of members have the object, each from a Work, and the WorkSet reports that
// they are available.
func (j *joined) availableOn(what string, n int) {
	j.T.Helper()
	mustertest.Eventually(j.T, pollInterval, what, func() error {
		s, objects, works := j.get("web").Status, j.dataOf("web"), j.withWork()
		missing := slices.DeleteFunc(slices.Clone(works), func(name string) bool { return objects[name] != nil })
		got := []int{len(objects), len(works), int(s.Counts.Available), int(s.Counts.Total), len(missing)}
		if slices.Equal(got, []int{n, n, n, n, 0}) {
			return nil
		}
		return fmt.Errorf("objects on %v, Works of %v, objects missing on %v; status: %+v",
			slices.Sorted(maps.Keys(objects)), works, missing, s)
	})
}
