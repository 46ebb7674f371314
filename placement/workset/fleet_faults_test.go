package workset_test

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// decided returns the decisions of the Placement, and the resourceVersions of the decisions and of the WorkSet.
func (f *fleetTest) decided() map[string]string {
	f.T.Helper()
	var list v1alpha1.PlacementDecisionList
	require.NoError(f.T, f.Client.List(f.T.Context(), &list, client.InNamespace(f.Namespace)))
	found := map[string]string{"web": f.get("web").ResourceVersion}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return found
}

func (f *fleetTest) stepRestart() {
	f.stop()
	before, decided := f.observed.of(f.Namespace), f.decided()
	f.begin()
	f.stop = f.control(f.root, f.Namespace, &f.writes, nil)
	f.wait("the controller reads the revisions", func() bool { return f.writes.read("worksetrevisions") > 0 })
	require.Empty(f.T, f.quiet())
	require.Empty(f.T, f.writes.counts(), "no status is written")
	require.Empty(f.T, f.writes.failures())
	f.untouched(before, 0)
	require.Equal(f.T, decided, f.decided())
}

// stepCrashes distributes a change with a series of controllers. Each of them stops at one of its first writes, before
// or after the API server carries it out.
func (f *fleetTest) stepCrashes() {
	before := f.observed.of(f.Namespace)
	revisions := len(f.get("web").Status.Revisions)
	decided := f.decided()
	delete(decided, "web")
	f.stop()
	f.setColor("black", nil)
	f.begin()
	crashes, stable := counts{}, f.get("web").Status.Revision
	for i, at := range []int{1, 1, 2, 2, 3, 5, 8, 13, 21, 34} {
		how := mustertest.RequestLost
		if i%2 == 0 {
			how = mustertest.ResponseLost
		}
		c := mustertest.NewCrash(max(1, at*len(f.names)/200), how)
		stop := f.control(f.root, f.Namespace, &f.writes, c.Wrap)
		f.starts++
		f.wait("the controllers crash", func() bool {
			select {
			case <-c.Done():
				crashes[c.Request()]++
				return true
			default:
				return len(f.updated(stable)) == len(f.names) // earlier controllers have done too much for a crash
			}
		})
		stop()
	}
	f.T.Logf("crashed at %v", crashes)
	require.NotZero(f.T, crashes["POST worksetrevisions"])
	require.NotZero(f.T, crashes["PATCH works"])
	f.stop = f.control(f.root, f.Namespace, &f.writes, nil)
	f.waitAvailable(len(f.names))
	require.Equal(f.T, len(f.names), f.writes.counts()["PATCH works"])
	require.Empty(f.T, f.writes.twice())
	f.requireChangedOnce(before)
	require.Equal(f.T, counts{"black": len(f.names)}, f.colors())
	require.Len(f.T, f.get("web").Status.Revisions, revisions+1)
	after := f.decided()
	delete(after, "web")
	require.Equal(f.T, decided, after)
}

func taint(key string) membershipv1alpha1.Taint {
	return membershipv1alpha1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())}
}

// chosen returns the members that have a Work which is not being deleted.
func (f *fleetTest) chosen() (names []string) {
	works := f.observed.of(f.Namespace)
	for _, name := range f.names {
		for _, w := range works {
			if w.Namespace == onHub(name) && w.DeletionTimestamp == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// atLeastAvailable returns a check that at least n clusters are available at all times.
func atLeastAvailable(n int) func(map[string]*workv1alpha1.Work) error {
	return func(works map[string]*workv1alpha1.Work) error {
		available := 0
		for _, w := range works {
			if isAvailable(w) {
				available++
			}
		}
		if available < n {
			return fmt.Errorf("%d clusters are available, want at least %d", available, n)
		}
		return nil
	}
}

func (f *fleetTest) stepEviction() {
	chosen := f.chosen()
	tainted := []string{chosen[0], chosen[len(chosen)/2]}
	availability := f.observed.check(atLeastAvailable(len(chosen)))
	for _, name := range tainted {
		f.taint(name, taint("example.com/maintenance"))
	}
	f.wait("one member is evicted", func() bool { return len(f.withoutWork(tainted)) == 1 })
	n := f.quiet()
	require.Equal(f.T, counts{"POST works": 2, "PATCH works": 1, "DELETE works": 1}, n,
		"the eviction of the other member waits")
	require.Len(f.T, f.chosen(), len(chosen)+1)
	require.NoError(f.T, availability())

	f.begin()
	availability = f.observed.check(atLeastAvailable(len(chosen)))
	f.policy(func(p *v1alpha1.PlacementSpec) { p.Failover.MaxEvictions = new(int32(1000)) })
	require.Equal(f.T, counts{"PATCH works": 1, "DELETE works": 1}, f.waitAvailable(len(chosen)))
	require.NoError(f.T, availability())
	require.Len(f.T, f.withoutWork(tainted), 2)
	for _, name := range tainted {
		f.taint(name)
	}
	f.begin()
	require.Empty(f.T, f.waitAvailable(len(chosen)), "evicted members are not selected again")
}

// withoutWork returns those of the given members that have no Work any more.
func (f *fleetTest) withoutWork(some []string) []string {
	chosen := f.chosen()
	return slices.DeleteFunc(slices.Clone(some), func(name string) bool { return slices.Contains(chosen, name) })
}

func (f *fleetTest) taint(name string, taints ...membershipv1alpha1.Taint) {
	f.T.Helper()
	f.member(name, func(m *membershipv1alpha1.MemberCluster) { m.Spec.Taints = taints })
}

// stepMemberLost stops the agent of a member, as if its network were partitioned, and updates the hub as its monitor
// would.
func (f *fleetTest) stepMemberLost() {
	chosen := f.chosen()
	lost := chosen[1]
	f.stopAgent(lost)
	f.health(lost, metav1.ConditionUnknown)
	f.taint(lost, taint("membership.muster.dev/unreachable"))
	f.wait("another member has a Work", func() bool {
		return len(f.withoutWork([]string{lost})) == 1 && len(f.chosen()) == len(chosen)
	})
	f.status("the WorkSet is available on the other members", func(s *v1alpha1.WorkSetStatus) bool {
		return int(s.Counts.Available) == len(chosen) && int(s.Counts.Total) == len(chosen) && s.Counts.Leaving == 1
	})
	require.Equal(f.T, counts{"POST works": 1, "PATCH works": 1, "DELETE works": 1}, f.quiet())
	require.Contains(f.T, f.dataOf("web"), lost, "an unreachable member keeps the object")

	f.health(lost, metav1.ConditionTrue)
	f.taint(lost)
	f.startAgent(lost)
	f.wait("the member deletes the object", func() bool { return len(f.dataOf("web")) == len(chosen) })
	require.NotContains(f.T, f.dataOf("web"), lost)
	f.waitAvailable(len(chosen))
}

func (f *fleetTest) stepDelete() {
	chosen := f.chosen()
	unreachable := chosen[2]
	f.stopAgent(unreachable)
	set := f.get("web")
	require.NoError(f.T, f.Client.Delete(f.T.Context(), set))
	f.wait("the WorkSet is deleted", func() bool {
		return apierrors.IsNotFound(f.Client.Get(f.T.Context(), client.ObjectKeyFromObject(set), set))
	})
	f.wait("all reachable members delete the objects", func() bool {
		return len(f.dataOf("web")) == 1 && len(f.observed.of(f.Namespace)) == 1
	})
	require.Contains(f.T, f.dataOf("web"), unreachable)
	n := f.quiet()
	require.Equal(f.T, counts{"PATCH works": len(chosen), "DELETE works": len(chosen), "PATCH worksets": 1}, n)
	require.Equal(f.T, "PATCH worksets", f.writes.last(),
		"the WorkSet is deleted after the deletion of all its Works has begun")

	f.startAgent(unreachable)
	f.wait("nothing is left on the hub", func() bool {
		var list v1alpha1.WorkSetRevisionList
		require.NoError(f.T, f.Client.List(f.T.Context(), &list, client.InNamespace(f.Namespace)))
		return len(f.observed.of(f.Namespace)) == 0 && len(list.Items) == 0
	})
	require.Empty(f.T, f.dataOf("web"))
	require.Empty(f.T, f.dataOf("motd"))
	f.wait("nothing is left on the members", func() bool {
		var list workv1alpha1.AppliedWorkList
		require.NoError(f.T, f.members.List(f.T.Context(), &list))
		return !slices.ContainsFunc(list.Items, func(a workv1alpha1.AppliedWork) bool {
			return slices.Contains(f.names, a.Spec.Work.Hub)
		})
	})
}
