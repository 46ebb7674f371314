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
	f.t.Helper()
	var list v1alpha1.PlacementDecisionList
	require.NoError(f.t, f.client.List(f.t.Context(), &list, client.InNamespace(f.namespace)))
	found := map[string]string{"web": f.get("web").ResourceVersion}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return found
}

func (f *fleetTest) restarts() {
	f.stop()
	before, decided := f.seen.all(), f.decided()
	f.begin()
	f.stop = f.control(f.root, f.namespace, &f.writes, nil)
	f.wait("it looks", func() bool { return f.writes.read("worksetrevisions") > 0 })
	require.Empty(f.t, f.quiet())
	require.Empty(f.t, f.writes.counts(), "nor is any status written")
	require.Empty(f.t, f.writes.failures())
	f.untouched(before, 0)
	require.Equal(f.t, decided, f.decided())
}

// isKilled distributes a change with a series of controllers. Each of them stops at one of its first writes, before or
// after the API server carries it out.
func (f *fleetTest) isKilled() {
	before := f.seen.all()
	revisions := len(f.get("web").Status.Revisions)
	decided := f.decided()
	delete(decided, "web")
	f.stop()
	f.paint("black", nil)
	f.begin()
	deaths, stable := counts{}, f.get("web").Status.Revision
	for i, at := range []int{1, 1, 2, 2, 3, 5, 8, 13, 21, 34} {
		how := mustertest.RequestLost
		if i%2 == 0 {
			how = mustertest.ResponseLost
		}
		c := mustertest.NewCrash(max(1, at*len(f.names)/200), how)
		stop := f.control(f.root, f.namespace, &f.writes, c.Wrap)
		f.wait("it dies", func() bool {
			select {
			case <-c.Done():
				deaths[c.Request()]++
				return true
			default:
				return len(f.updated(stable)) == len(f.names) // those before have left too little to do
			}
		})
		stop()
	}
	f.t.Logf("died at %v", deaths)
	require.NotZero(f.t, deaths["POST worksetrevisions"])
	require.NotZero(f.t, deaths["PATCH works"])
	f.stop = f.control(f.root, f.namespace, &f.writes, nil)
	f.settles(len(f.names))
	require.Equal(f.t, len(f.names), f.writes.counts()["PATCH works"])
	require.Empty(f.t, f.writes.twice())
	f.onceMore(before)
	require.Equal(f.t, counts{"black": len(f.names)}, f.colors())
	require.Len(f.t, f.get("web").Status.Revisions, revisions+1)
	after := f.decided()
	delete(after, "web")
	require.Equal(f.t, decided, after)
}

func taint(key string) membershipv1alpha1.Taint {
	return membershipv1alpha1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())}
}

// chosen returns the members that have a Work which is not being deleted.
func (f *fleetTest) chosen() (names []string) {
	works := f.seen.of(f.namespace)
	for _, name := range f.names {
		for _, w := range works {
			if w.Namespace == onHub(name) && w.DeletionTimestamp == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// atLeast returns a check that at least n clusters are available at all times.
func atLeast(n int) func(map[string]*workv1alpha1.Work) error {
	return func(works map[string]*workv1alpha1.Work) error {
		fine := 0
		for _, w := range works {
			if well(w) {
				fine++
			}
		}
		if fine < n {
			return fmt.Errorf("%d clusters are well, and %d must be", fine, n)
		}
		return nil
	}
}

func (f *fleetTest) evicts() {
	chosen := f.chosen()
	two := []string{chosen[0], chosen[len(chosen)/2]}
	enough := f.seen.whether(atLeast(len(chosen)))
	for _, name := range two {
		f.taint(name, taint("example.com/maintenance"))
	}
	f.wait("one is left", func() bool { return len(f.left(two)) == 1 })
	n := f.quiet()
	require.Equal(f.t, counts{"POST works": 2, "PATCH works": 1, "DELETE works": 1}, n,
		"the other one has to wait for its turn")
	require.Len(f.t, f.chosen(), len(chosen)+1)
	require.NoError(f.t, enough())

	f.begin()
	enough = f.seen.whether(atLeast(len(chosen)))
	f.policy(func(p *v1alpha1.PlacementSpec) { p.Failover.MaxEvictions = new(int32(1000)) })
	require.Equal(f.t, counts{"PATCH works": 1, "DELETE works": 1}, f.settles(len(chosen)))
	require.NoError(f.t, enough())
	require.Len(f.t, f.left(two), 2)
	for _, name := range two {
		f.taint(name)
	}
	f.begin()
	require.Empty(f.t, f.settles(len(chosen)), "they do not go back")
}

// left returns those of the given members that have no Work any more.
func (f *fleetTest) left(some []string) []string {
	chosen := f.chosen()
	return slices.DeleteFunc(slices.Clone(some), func(name string) bool { return slices.Contains(chosen, name) })
}

func (f *fleetTest) taint(name string, taints ...membershipv1alpha1.Taint) {
	f.t.Helper()
	f.member(name, func(m *membershipv1alpha1.MemberCluster) { m.Spec.Taints = taints })
}

// losesMember stops the agent of a member, as if its network were partitioned, and updates the hub as its monitor
// would.
func (f *fleetTest) losesMember() {
	chosen := f.chosen()
	lost := chosen[1]
	f.stopAgent(lost)
	f.health(lost, metav1.ConditionUnknown)
	f.taint(lost, taint("membership.muster.dev/unreachable"))
	f.wait("another one has it", func() bool { return len(f.left([]string{lost})) == 1 && len(f.chosen()) == len(chosen) })
	f.status("it is to be available elsewhere", func(s *v1alpha1.WorkSetStatus) bool {
		return int(s.Counts.Available) == len(chosen) && int(s.Counts.Total) == len(chosen) && s.Counts.Leaving == 1
	})
	require.Equal(f.t, counts{"POST works": 1, "PATCH works": 1, "DELETE works": 1}, f.quiet())
	require.Contains(f.t, f.has("web"), lost, "nobody can take it away")

	f.health(lost, metav1.ConditionTrue)
	f.taint(lost)
	f.startAgent(lost)
	f.wait("it is given back", func() bool { return len(f.has("web")) == len(chosen) })
	require.NotContains(f.t, f.has("web"), lost)
	f.settles(len(chosen))
}

func (f *fleetTest) ends() {
	chosen := f.chosen()
	dead := chosen[2]
	f.stopAgent(dead)
	set := f.get("web")
	require.NoError(f.t, f.client.Delete(f.t.Context(), set))
	f.wait("the WorkSet goes", func() bool {
		return apierrors.IsNotFound(f.client.Get(f.t.Context(), client.ObjectKeyFromObject(set), set))
	})
	f.wait("all but the dead one give it back", func() bool {
		return len(f.has("web")) == 1 && len(f.seen.of(f.namespace)) == 1
	})
	require.Contains(f.t, f.has("web"), dead)
	n := f.quiet()
	require.Equal(f.t, counts{"PATCH works": len(chosen), "DELETE works": len(chosen), "PATCH worksets": 1}, n)
	require.Equal(f.t, "PATCH worksets", f.writes.last(),
		"the WorkSet goes when the deletion of all its Works has begun, and not before")

	f.startAgent(dead)
	f.wait("nothing is left on the hub", func() bool {
		var list v1alpha1.WorkSetRevisionList
		require.NoError(f.t, f.client.List(f.t.Context(), &list, client.InNamespace(f.namespace)))
		return len(f.seen.all()) == 0 && len(list.Items) == 0
	})
	require.Empty(f.t, f.has("web"))
	require.Empty(f.t, f.has("motd"))
	f.wait("nor on the members", func() bool {
		var list workv1alpha1.AppliedWorkList
		require.NoError(f.t, f.members.List(f.t.Context(), &list))
		return !slices.ContainsFunc(list.Items, func(a workv1alpha1.AppliedWork) bool {
			return slices.Contains(f.names, a.Spec.Work.Hub)
		})
	})
}
