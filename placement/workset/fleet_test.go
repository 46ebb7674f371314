package workset_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// fleetSize is the number of members in TestFleet: 200 in the step models of .ci/run.
var fleetSize = func() int {
	if testkit.Exhaustive() {
		return 200
	}
	return testkit.WithoutRace(60, 40)
}()

// fleetTest is the lifecycle of a fleet, step by step.
type fleetTest struct {
	*hollows

	writes traffic
	stop   func() // ends the controllers
	first  string // the revision of the first step
	began  time.Time
	starts int // how often the controllers were started in the step
}

// newFleet runs the controllers for a fleet.
func newFleet(f *hollows) *fleetTest {
	t := &fleetTest{hollows: f}
	t.writes.reset()
	t.stop = f.control(f.root, f.Namespace, &t.writes, nil)
	return t
}

// step runs a step of the lifecycle.
func (f *fleetTest) step(name string, do func()) {
	testkit.Step(f.root, name, func() {
		f.begin()
		do()
	})
}

// TestFleet runs the lifecycle of one WorkSet on all members of a fleet. After each step it checks the objects of the
// clusters and the number of requests.
func TestFleet(t *testing.T) { testkit.Virtual(t, testFleet) }

func testFleet(t *testing.T) {
	f := newFleet(newHollows(t, fleetSize))
	f.step("all members receive the WorkSet", f.stepDistribute)
	f.step("a field of one manifest changes", f.stepChange)
	f.step("an override for some members changes", f.stepOverride)
	f.step("a member is deselected and selected again", f.stepDeselect)
	f.step("a rollout fails, continues and is repaired", f.stepFailedRollout)
	f.step("a failed rollout is rolled back", f.stepRollback)
	f.step("a user pins the first revision", f.stepPinRevision)
	f.step("the controllers are restarted", f.stepRestart)
	f.step("the controllers crash repeatedly", f.stepCrashes)
	f.step("the API server of the hub is unreachable during a rollout", f.stepHubOutage)
	f.step("the Placement selects fewer members", f.stepPickN)
	f.step("members with a taint are evicted", f.stepEviction)
	f.step("a member becomes unreachable", f.stepMemberLost)
	f.step("the WorkSet is deleted while a member is unreachable", f.stepDelete)
}

// TestFleet_OnPlane runs the steps of TestFleet that depend on the API server on a control plane. The API server is
// killed during a rollout.
func TestFleet_OnPlane(t *testing.T) {
	f := newFleet(newHollowsOnPlane(t, testkit.WithoutRace(20, 10)))
	f.step("all members receive the WorkSet", f.stepDistribute)
	f.step("the API server of the hub is killed during a rollout", f.stepHubOutage)
	f.step("the WorkSet is deleted while a member is unreachable", f.stepDelete)
}

// begin resets the counts of requests.
func (f *fleetTest) begin() {
	f.writes.reset()
	f.agents.reset()
	f.began, f.starts = time.Now(), 0
}

// counts contains numbers of requests, by verb and resource, as in "PATCH works".
type counts = map[string]int

func (f *fleetTest) stepDistribute() {
	f.policy(func(p *v1alpha1.PlacementSpec) {
		p.Policy.Affinity = &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hub": f.Namespace}}},
		}}
	})
	f.distribute("web", "all", nil, configMap("web", map[string]string{"color": "blue"}),
		configMap("motd", map[string]string{"text": "hello"}))
	f.wait("each has a Work", func() bool { return len(f.observed.of(f.Namespace)) == len(f.names) })
	f.T.Logf("the last Work was there after %.1fs", time.Since(f.began).Seconds())
	require.Equal(f.T, counts{"POST works": len(f.names), "PATCH worksets": 1, "POST worksetrevisions": 1},
		f.waitAvailable(len(f.names)))
	require.Empty(f.T, f.writes.twice())
	require.Equal(f.T, counts{"blue": len(f.names)}, f.colors())
	require.Len(f.T, f.dataOf("motd"), len(f.names))
	require.Zero(f.T, f.agents.counts()["PATCH works"], "Works have the finalizer from the beginning")
	require.Empty(f.T, f.agents.failures(), "the role of the agents is sufficient")
	f.first = f.get("web").Status.Revision
}

func (f *fleetTest) stepChange() {
	f.setColor("green", nil)
	require.Equal(f.T, counts{"PATCH works": len(f.names), "POST worksetrevisions": 1}, f.waitAvailable(len(f.names)))
	require.Empty(f.T, f.writes.twice())
	require.Equal(f.T, counts{"green": len(f.names)}, f.colors())
}

func (f *fleetTest) stepOverride() {
	before, some := f.observed.of(f.Namespace), f.names[:len(f.names)/10]
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Overrides = override(some, `{"data":{"color":"yellow"}}`) })
	// The other Works only get the annotations of the revision.
	require.Equal(f.T, counts{"PATCH works": len(f.names), "POST worksetrevisions": 1}, f.waitAvailable(len(f.names)))
	require.Empty(f.T, f.writes.twice())
	require.Equal(f.T, counts{"green": len(f.names) - len(some), "yellow": len(some)}, f.colors())
	require.Len(f.T, f.changed(before), len(some), "the content of the other Works is unchanged")
}

func (f *fleetTest) stepDeselect() {
	one := f.names[len(f.names)/2]
	before := f.observed.of(f.Namespace)
	f.label(one, "elsewhere")
	require.Equal(f.T, counts{"PATCH works": 1, "DELETE works": 1}, f.waitAvailable(len(f.names)-1))
	f.wait("the member deletes the objects", func() bool {
		return len(f.dataOf("web")) == len(f.names)-1 && len(f.dataOf("motd")) == len(f.names)-1
	})
	require.NotContains(f.T, f.dataOf("web"), one)
	f.untouched(before, 1)

	before = f.observed.of(f.Namespace)
	f.begin()
	f.label(one, f.Namespace)
	require.Equal(f.T, counts{"POST works": 1}, f.waitAvailable(len(f.names)))
	require.Contains(f.T, f.dataOf("web"), one)
	f.untouched(before, 0)
}

// stepPickN reduces the selection to a quarter of the members.
func (f *fleetTest) stepPickN() {
	n := len(f.names) / 4
	before := f.observed.of(f.Namespace)
	f.policy(func(p *v1alpha1.PlacementSpec) {
		p.Policy.Type, p.Policy.NumberOfClusters = v1alpha1.PickN, new(int32(n))
		p.Failover = &v1alpha1.FailoverPolicy{MaxEvictions: new(int32(1)), PeriodSeconds: new(int32(86400))}
	})
	require.Equal(f.T, counts{"PATCH works": len(f.names) - n, "DELETE works": len(f.names) - n}, f.waitAvailable(n),
		"a change of the Placement is not limited by maxEvictions")
	require.Empty(f.T, f.writes.twice())
	f.wait("the other members delete the objects", func() bool {
		return len(f.dataOf("web")) == n && len(f.dataOf("motd")) == n
	})
	f.untouched(before, len(f.names)-n)
}

// policy changes the Placement, or creates it if it does not exist.
func (f *fleetTest) policy(change func(*v1alpha1.PlacementSpec)) {
	f.T.Helper()
	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "all"}}
	err := f.Client.Get(f.T.Context(), client.ObjectKeyFromObject(p), p)
	before := p.DeepCopy()
	change(&p.Spec)
	if err != nil {
		require.NoError(f.T, client.IgnoreNotFound(err))
		require.NoError(f.T, f.Client.Create(f.T.Context(), p))
		return
	}
	require.NoError(f.T, f.Client.Patch(f.T.Context(), p, client.MergeFrom(before)))
}

// label sets the label hub of a member, by which the Placement selects members.
func (f *fleetTest) label(member, hub string) {
	f.T.Helper()
	f.member(member, func(m *membershipv1alpha1.MemberCluster) { m.Labels["hub"] = hub })
}

func (f *fleetTest) member(name string, change func(*membershipv1alpha1.MemberCluster)) {
	f.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(f.T, f.Client.Get(f.T.Context(), client.ObjectKey{Name: name}, m))
	before := m.DeepCopy()
	change(m)
	require.NoError(f.T, f.Client.Patch(f.T.Context(), m, client.MergeFrom(before)))
}

// setColor changes the color in the object, together with other changes of the WorkSet.
func (f *fleetTest) setColor(color string, also func(*v1alpha1.WorkSetSpec)) {
	f.T.Helper()
	f.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": color})
		if also != nil {
			also(&s.Spec)
		}
	})
}

// override returns overrides that patch the object for some members.
func override(members []string, patch string) *v1alpha1.Overrides {
	return &v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{
		Clusters: []v1alpha1.ClusterSelector{{Names: members}}, Objects: []v1alpha1.ObjectSelector{{Kind: "ConfigMap",
			Name: "web"}},
		MergePatch: &runtime.RawExtension{Raw: []byte(patch)},
	}}}
}

// colors returns how many members have the object in each color.
func (f *fleetTest) colors() counts {
	f.T.Helper()
	n := counts{}
	for _, data := range f.dataOf("web") {
		n[data["color"]]++
	}
	return n
}

// changed returns the Works whose content has changed, and the new ones.
func (f *fleetTest) changed(before map[string]*workv1alpha1.Work) (names []string) {
	for name, work := range f.observed.of(f.Namespace) {
		if was := before[name]; was == nil || was.UID != work.UID || was.Generation != work.Generation {
			names = append(names, name)
		}
	}
	return names
}

// untouched requires that all earlier Works are unchanged, except for the given number of Works that do not exist any
// more. It ignores new Works.
func (f *fleetTest) untouched(before map[string]*workv1alpha1.Work, gone int) {
	f.T.Helper()
	now := f.observed.of(f.Namespace)
	for name, was := range before {
		if work := now[name]; work == nil {
			gone--
		} else {
			require.Equal(f.T, was.ResourceVersion, work.ResourceVersion, name)
		}
	}
	require.Zero(f.T, gone)
}

// waitAvailable waits until the WorkSet is available on the given number of clusters and writes have stopped. It
// returns the writes since the step began, without those of the status, whose number it checks, and without those of
// the Placement.
func (f *fleetTest) waitAvailable(clusters int) counts {
	f.T.Helper()
	f.status(fmt.Sprintf("the WorkSet is available on %d clusters", clusters), func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseSucceeded && s.Rollout.Revision == s.Revision &&
			s.Counts == v1alpha1.ClusterCounts{
				Total: int32(clusters), Updated: int32(clusters), Applied: int32(clusters), Available: int32(clusters),
			}
	})
	return f.quiet()
}

// status waits until the status for the current generation of the WorkSet has a property.
func (f *fleetTest) status(what string, holds func(*v1alpha1.WorkSetStatus) bool) {
	f.T.Helper()
	f.wait(what, func() bool {
		s := &v1alpha1.WorkSet{}
		err := f.Client.Get(f.T.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "web"}, s)
		return err == nil && s.Status.ObservedGeneration == s.Generation && holds(&s.Status)
	})
}

// immediateWrites is how many status writes may follow each other without a delay, because users wait for their
// content. A rollback needs twice as many as a rollout that succeeds. One for each member would be too many.
const immediateWrites = 20

// quiet waits until writes have stopped and are observed, and returns the same counts as waitAvailable.
func (f *fleetTest) quiet() counts {
	f.T.Helper()
	last, since := fmt.Sprint(f.writes.counts()), time.Now()
	took := since.Sub(f.began)
	f.wait("writes have stopped", func() bool {
		if now := fmt.Sprint(f.writes.counts()); now != last {
			last, since = now, time.Now()
			took = since.Sub(f.began)
		}
		return time.Since(since) > 1500*time.Millisecond
	})
	f.waitCurrent()
	n := f.writes.counts()
	f.T.Logf("%d members, %.1fs: %v; failed: %v; agents: %v", len(f.names), took.Seconds(), n,
		f.writes.failures(), f.agents.counts())
	// One write for each second. The first may be immediate, and the second of the last may have begun before the step.
	// The first write of controllers that were started is immediate, too.
	paced := f.writes.pacedWrites()
	require.LessOrEqual(f.T, paced, 2+int(took.Seconds())+f.starts)
	immediate := immediateWrites
	if f.memory == nil {
		// In real time, each member that is updated may make the WorkSet unavailable and available again.
		immediate += 2 * len(f.names)
	}
	require.LessOrEqual(f.T, n["PATCH worksets/status"]-paced, immediate)
	maps.DeleteFunc(n, func(request string, _ int) bool {
		switch request {
		case "PATCH worksets/status", "PATCH placements/status", "POST placementdecisions", "PATCH placementdecisions",
			"PUT placementdecisions", "DELETE placementdecisions":
			return true
		}
		return false
	})
	return n
}
