package fleet_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var hollowMembers = flag.Int("hollow-members", 20, "number of members of TestJoinHollow_EachAgentHasItsOwnMember")

var (
	hubPlane    = localplane.Shared{Options: localplane.Options{Name: "hub"}}
	memberPlane = localplane.Shared{Options: localplane.Options{Name: "member"}}
)

func TestMain(m *testing.M) { mustertest.Main(m, &hubPlane, &memberPlane) }

// stores are the stores of the agents, by member. An agent continues its membership when a test runs again.
var stores = map[string]*testkit.MemoryStore{}

func storeOf(member string) *testkit.MemoryStore {
	if stores[member] == nil {
		stores[member] = &testkit.MemoryStore{}
	}
	return stores[member]
}

// The tests share a hub plane, so each stops its hub before the next one starts.

func TestJoin_AppliesWorksAndContinuesAfterStop(t *testing.T) {
	hub := fleet.StartHub(t, hubPlane.ForTest(t).Config(), fleet.HubOptions{})
	member := memberPlane.ForTest(t).Config()
	onMember := mustertest.Client(t, member, mustertest.Scheme())
	options := assembly.AgentOptions{Membership: agent.Options{Store: storeOf("east")}}
	stop := hub.Join("east", member, options)

	var east v1alpha1.MemberCluster
	require.NoError(t, hub.Client().Get(t.Context(), client.ObjectKey{Name: "east"}, &east))
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: east.Status.Namespace, Name: "greeting"},
		Spec:       workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{greeting("hello")}},
	}
	require.NoError(t, hub.Client().Create(t.Context(), work))
	waitForText := func(text string) {
		t.Helper()
		mustertest.Holds(t, time.Minute, "the member has the text "+text, func() bool {
			var got corev1.ConfigMap
			key := client.ObjectKey{Namespace: "default", Name: "greeting"}
			return onMember.Get(t.Context(), key, &got) == nil && got.Data["text"] == text
		})
	}
	waitForText("hello")

	stop()
	mustertest.Change(t, hub.Client(), work, func(w *workv1alpha1.Work) {
		w.Spec.Manifests = []workv1alpha1.Manifest{greeting("goodbye")}
	})
	stop = hub.Join("east", member, options)
	waitForText("goodbye")
	var again v1alpha1.MemberCluster
	require.NoError(t, hub.Client().Get(t.Context(), client.ObjectKey{Name: "east"}, &again))
	require.Equal(t, east.UID, again.UID, "the agent continues its membership")
	remove(t, hub.Client(), work)
	stop()
}

// remove deletes an object, and waits until the deletion is complete.
func remove(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	require.NoError(t, c.Delete(t.Context(), object))
	mustertest.Holds(t, time.Minute, object.GetName()+" is deleted", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	})
}

func greeting(text string) workv1alpha1.Manifest {
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Object: &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "greeting"},
		Data:       map[string]string{"text": text},
	}}}
}

func TestJoinHollow_EachAgentHasItsOwnMember(t *testing.T) {
	count := *hollowMembers
	hub := fleet.StartHub(t, hubPlane.ForTest(t).Config(), fleet.HubOptions{})
	options := fleet.HollowOptions{
		Member: memberPlane.ForTest(t).Config(),
		Configure: func(i int, o *agent.Options) {
			o.Store, o.Labels = storeOf(fmt.Sprint("hollow-", i)), map[string]string{"hollow": "true"}
		},
	}
	members := func() map[string]v1alpha1.MemberCluster {
		var list v1alpha1.MemberClusterList
		require.NoError(t, hub.Client().List(t.Context(), &list, client.MatchingLabels{"hollow": "true"}))
		byUID := map[string]v1alpha1.MemberCluster{}
		for _, m := range list.Items {
			byUID[string(m.UID)] = m
		}
		return byUID
	}
	stop := hub.JoinHollow(count, options)
	joined := members()
	require.Len(t, joined, count)

	stop()
	stop = hub.JoinHollow(count, options)
	for uid := range members() {
		require.Contains(t, joined, uid, "agents with the same store continue their memberships")
	}
	stop()
	hub.Stop()
	hub.Stop() // A second call has no effect.
}
