package progress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// says returns a Work with conditions in text form, as in "Applied=True/Applied Available=False/Progressing".
func says(text string) Work {
	var conditions []metav1.Condition
	for part := range strings.FieldsSeq(text) {
		kind, rest, _ := strings.Cut(part, "=")
		status, reason, _ := strings.Cut(rest, "/")
		conditions = append(conditions, condition(kind, metav1.ConditionStatus(status), reason, 0))
	}
	return Of(workOf(conditions...))
}

const (
	allWell  = "Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired"
	onItsWay = "Applied=True/Applied Available=False/Progressing Progressing=True/Progressing Degraded=False/AsDesired"
	rejected = "Applied=False/Rejected Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Rejected"
	unknown  = "Applied=False/UnknownKind Available=False/NotApplied Progressing=False/AsDesired Degraded=True/UnknownKind"
	conflict = "Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict"
)

// assigned returns a reachable cluster with the assigned revision r2.
func assigned(works ...Work) Cluster {
	return Cluster{Name: "east", Chosen: true, Reachable: true, Revision: "r2", Current: true, Works: works}
}

func (c Cluster) but(change func(*Cluster)) Cluster {
	change(&c)
	return c
}

func (w Work) but(change func(*Work)) Work {
	change(&w)
	return w
}

var (
	outOfReach = func(c *Cluster) { c.Reachable = false }
	problem    = func(c *Cluster) { c.Problem = "override 1: the label is not there" }
	unwritten  = func(c *Cluster) { c.Current = false }
	unseen     = func(w *Work) { w.Generation = 4 }
	deleting   = func(w *Work) { w.Deleting = true }
)

func TestHealth(t *testing.T) {
	for _, test := range []struct {
		reason  string
		cluster Cluster
		want    rollout.Health
	}{
		{"all is applied and ready", assigned(says(allWell), says(allWell)), rollout.Succeeded},
		{"overrides keep all objects from it, so that there is no Work: it has all that it is to have", assigned(),
			rollout.Succeeded},

		{"it cannot be told, and nothing that it does changes that", assigned(says(allWell)).but(problem), rollout.Failed},
		{"nor does it matter whether it could be reached", assigned(says(allWell)).but(problem).but(outOfReach),
			rollout.Failed},
		{"nor that its Works are not as they are to be, which they cannot be",
			assigned(says(allWell)).but(problem).but(unwritten), rollout.Failed},

		{"what an agent said last may not be so anymore", assigned(says(allWell)).but(outOfReach), rollout.Unknown},
		{"also if that was that it has failed: the deadline counts", assigned(says(rejected)).but(outOfReach),
			rollout.Unknown},
		{"also if it was never told all of it", assigned(says(allWell)).but(outOfReach).but(unwritten), rollout.Unknown},
		{"also if it has not looked yet", assigned(says(allWell).but(unseen)).but(outOfReach), rollout.Unknown},

		{"not all Works are written: what is there says nothing about the revision", assigned(says(allWell)).but(unwritten),
			rollout.Progressing},
		{"neither that it is well nor that it has failed", assigned(says(rejected)).but(unwritten), rollout.Progressing},
		{"it has no Works yet", assigned().but(unwritten), rollout.Progressing},
		{"nothing was told, so that nothing can have succeeded", assigned().but(func(c *Cluster) { c.Revision = "" }),
			rollout.Progressing},
		{"the status is about the generation before", assigned(says(allWell).but(unseen)), rollout.Progressing},
		{"so is what failed", assigned(says(rejected).but(unseen)), rollout.Progressing},
		{"one of two Works was looked at", assigned(says(allWell), says(allWell).but(unseen)), rollout.Progressing},
		{"the status is about a generation that the hub does not have: of before it was restored",
			assigned(says(allWell).but(func(w *Work) { w.Observed = 9 })), rollout.Progressing},
		{"nobody has looked yet", assigned(Of(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}})),
			rollout.Progressing},
		{"somebody deletes the Work: it is to be made anew", assigned(says(allWell).but(deleting)), rollout.Progressing},

		{"an object that the member refuses for good", assigned(says(rejected)), rollout.Failed},
		{"in any of the Works", assigned(says(allWell), says(rejected)), rollout.Failed},
		{"a Work that cannot be right",
			assigned(says("Applied=False/Invalid Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Invalid")),
			rollout.Failed},
		{"the member does not let it run",
			assigned(says("Applied=False/AgentForbidden Available=False/NotApplied Progressing=False/AsDesired " +
				"Degraded=True/AgentForbidden")), rollout.Failed},
		{"the executor may not",
			assigned(says(
				"Applied=False/Forbidden Available=False/NotApplied Progressing=True/Progressing Degraded=True/Forbidden")),
			rollout.Failed},
		{"a Deployment that says that it has failed",
			assigned(says("Applied=True/Applied Available=False/NotReady Progressing=False/AsDesired Degraded=True/NotReady")),
			rollout.Failed},
		{"a wave that is late is failed, though it may still come",
			assigned(says("Applied=False/Pending Available=False/NotApplied Progressing=True/Progressing " +
				"Degraded=True/Timeout")),
			rollout.Failed},
		{"an object that is somebody else's",
			assigned(says("Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay")),
			rollout.Failed},
		{"drift that is to be reported: what is new may not be there",
			assigned(says("Applied=False/Drifted Available=True/Ready Progressing=False/AsDesired Degraded=True/Drifted")),
			rollout.Failed},
		{"an object to look at that is not there",
			assigned(says("Applied=False/NotFound Available=False/NotApplied Progressing=False/AsDesired " +
				"Degraded=True/NotFound")),
			rollout.Failed},
		{"an object that is not what it is compared with",
			assigned(says("Applied=False/Differs Available=True/Ready Progressing=False/AsDesired Degraded=True/Differs")),
			rollout.Failed},

		{"a kind that the member does not know", assigned(says(unknown)), rollout.Failed},
		{"which another Work may define: the agent finds out when it tries again", assigned(says(allWell), says(unknown)),
			rollout.Progressing},
		{"a conflict with somebody", assigned(says(conflict)), rollout.Failed},
		{"which may be another Work, that has given the object up by now", assigned(says(conflict), says(allWell)),
			rollout.Progressing},
		{"what is there and ready in spite of it is no success as long as it is degraded",
			assigned(says("Applied=True/Applied Available=True/Ready Degraded=True/Conflict"), says(allWell)),
			rollout.Progressing},
		{"that excuses no other Work", assigned(says(unknown), says(rejected)), rollout.Failed},

		{"it is on its way", assigned(says(onItsWay)), rollout.Progressing},
		{"a Job runs", assigned(says(onItsWay + " Complete=False/Progressing")), rollout.Progressing},
		{"a Job has ended well", assigned(says(allWell + " Complete=True/Completed")), rollout.Succeeded},
		{"an attempt failed and is repeated",
			assigned(says("Applied=False/Failed Available=False/NotApplied Progressing=True/Progressing " +
				"Degraded=False/AsDesired")),
			rollout.Progressing},
		{"what it is to replace is still being deleted on the member",
			assigned(says(
				"Applied=False/Terminating Available=False/NotApplied Progressing=True/Progressing Degraded=False/AsDesired")),
			rollout.Progressing},
		{"it cannot be told whether it is ready",
			assigned(says("Applied=True/Applied Available=False/Unknown Progressing=False/AsDesired Degraded=False/AsDesired")),
			rollout.Progressing},
		{"what was there before CreateOnly is applied as far as it goes", assigned(says(allWell)), rollout.Succeeded},
		{"what it no longer wants is not gone yet: what it wants is there",
			assigned(says("Applied=True/Applied Available=True/Ready Progressing=True/Progressing Degraded=False/AsDesired")),
			rollout.Succeeded},
		{"it was suspended before it was applied: the deadline counts",
			assigned(says(
				"Applied=False/Suspended Available=False/NotApplied Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Progressing},
		{"suspended with a difference: no failure, and not there either",
			assigned(says("Applied=False/Differs Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Progressing},
		{"suspended when it was all there",
			assigned(says("Applied=True/Applied Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Succeeded},
		{"an agent of somebody else's that does not know Degraded",
			assigned(says("Applied=True/Applied Available=True/Ready")),
			rollout.Succeeded},
		{"or says nothing of readiness", assigned(says("Applied=True/Applied")), rollout.Progressing},
	} {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want, test.cluster.Health())
		})
	}
}

func TestState(t *testing.T) {
	old := func(c *Cluster) { c.Revision = "r1" }
	none := func(c *Cluster) { c.Revision, c.Works = "", nil }
	waits := func(c *Cluster) { c.Hold = rollout.HoldOrder }
	unchosen := func(c *Cluster) { c.Chosen = false }
	for _, test := range []struct {
		reason  string
		cluster Cluster
		want    v1alpha1.ClusterState
	}{
		{"it has the revision, and all is ready", assigned(says(allWell)), v1alpha1.ClusterAvailable},
		{"it has the revision, and not all is ready", assigned(says(onItsWay)), v1alpha1.ClusterProgressing},
		{"what is well at another revision waits for its turn", assigned(says(allWell)).but(old).but(waits),
			v1alpha1.ClusterPending},
		{"what is on its way to another one waits as well", assigned(says(onItsWay)).but(old).but(waits),
			v1alpha1.ClusterPending},
		{"it has nothing, and waits", assigned().but(none).but(waits), v1alpha1.ClusterPending},
		{"nothing holds it: it is being told", assigned(says(allWell)).but(old), v1alpha1.ClusterProgressing},
		{"nothing holds it, and it is its first", assigned().but(none), v1alpha1.ClusterProgressing},
		{"what fails at another revision wants to be looked at, whether it waits or not",
			assigned(says(rejected)).but(old).but(waits), v1alpha1.ClusterFailed},
		{"what could not be told has failed", assigned().but(none).but(problem), v1alpha1.ClusterFailed},
		{"why it had to wait for the revision that it has does not matter", assigned(says(onItsWay)).but(waits),
			v1alpha1.ClusterProgressing},
		{"of what cannot be reached nothing else is known", assigned(says(allWell)).but(old).but(waits).but(outOfReach),
			v1alpha1.ClusterUnknown},
		{"what is not chosen leaves, however it is", assigned(says(rejected)).but(unchosen).but(outOfReach).but(problem),
			v1alpha1.ClusterLeaving},
	} {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want, test.cluster.State("r2"))
		})
	}
}

// TestDegradedWithAnyReason fails for a reason that is added to the agent, until it is decided here whether another
// Work of the cluster can resolve it.
func TestDegradedWithAnyReason(t *testing.T) {
	cured := map[string]bool{workv1alpha1.ReasonUnknownKind: true, workv1alpha1.ReasonConflict: true}
	for _, reason := range []string{
		workv1alpha1.ReasonInvalid, workv1alpha1.ReasonUnknownKind, workv1alpha1.ReasonNotFound, workv1alpha1.ReasonInTheWay,
		workv1alpha1.ReasonConflict,
		workv1alpha1.ReasonDrifted, workv1alpha1.ReasonDiffers, workv1alpha1.ReasonForbidden, workv1alpha1.ReasonRejected,
		workv1alpha1.ReasonNotReady,
		workv1alpha1.ReasonTimeout, workv1alpha1.ReasonAgentForbidden, workv1alpha1.ReasonNotAccepted,
	} {
		work := says(fmt.Sprintf("Applied=False/%[1]s Available=False/NotApplied Degraded=True/%[1]s", reason))
		alone, two := assigned(work), assigned(work, says(allWell))
		require.Equal(t, rollout.Failed, alone.Health(), reason)
		require.Equal(t, cured[reason], two.Health() == rollout.Progressing, reason)
		require.Equal(t, !cured[reason], two.Health() == rollout.Failed, reason)
	}
}
