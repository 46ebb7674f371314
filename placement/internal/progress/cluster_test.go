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
		{"all Works are applied and available", assigned(says(allWell), says(allWell)), rollout.Succeeded},
		{"the overrides delete all objects, so the cluster needs no Work", assigned(),
			rollout.Succeeded},

		{"a cluster with a Problem has failed, regardless of its " +
			"Works", assigned(says(allWell)).but(problem), rollout.Failed},
		{"a cluster with a Problem has failed, also if it is " +
			"unreachable", assigned(says(allWell)).but(problem).but(outOfReach),
			rollout.Failed},
		{"a cluster with a Problem has failed, also if its Works are outdated",
			assigned(says(allWell)).but(problem).but(unwritten), rollout.Failed},

		{"the last report of an unreachable cluster may be " +
			"outdated", assigned(says(allWell)).but(outOfReach), rollout.Unknown},
		{"the last report was a failure, which may be outdated as well", assigned(says(rejected)).but(outOfReach),
			rollout.Unknown},
		{"an unreachable cluster with unwritten " +
			"Works", assigned(says(allWell)).but(outOfReach).but(unwritten), rollout.Unknown},
		{"an unreachable cluster that has not observed the " +
			"Work", assigned(says(allWell).but(unseen)).but(outOfReach), rollout.Unknown},

		{"not all Works are written, so the existing ones do not show the health of the " +
			"revision", assigned(says(allWell)).but(unwritten),
			rollout.Progressing},
		{"not all Works are written, and an existing one has " +
			"failed", assigned(says(rejected)).but(unwritten), rollout.Progressing},
		{"it has no Works yet", assigned().but(unwritten), rollout.Progressing},
		{"without a revision, the cluster cannot succeed", assigned().but(func(c *Cluster) { c.Revision = "" }),
			rollout.Progressing},
		{"the status is about the previous generation", assigned(says(allWell).but(unseen)), rollout.Progressing},
		{"the failure is about the previous generation", assigned(says(rejected).but(unseen)), rollout.Progressing},
		{"one of two Works is observed", assigned(says(allWell), says(allWell).but(unseen)), rollout.Progressing},
		{"the status is about a later generation, because the hub was restored",
			assigned(says(allWell).but(func(w *Work) { w.Observed = 9 })), rollout.Progressing},
		{"the Work is not observed yet", assigned(Of(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}})),
			rollout.Progressing},
		{"the Work is being deleted, and must be created again", assigned(says(allWell).but(deleting)), rollout.Progressing},

		{"the member rejects an object permanently", assigned(says(rejected)), rollout.Failed},
		{"the member rejects an object of the second Work", assigned(says(allWell), says(rejected)), rollout.Failed},
		{"an invalid Work",
			assigned(says("Applied=False/Invalid Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Invalid")),
			rollout.Failed},
		{"the agent has no permission",
			assigned(says("Applied=False/AgentForbidden Available=False/NotApplied Progressing=False/AsDesired " +
				"Degraded=True/AgentForbidden")), rollout.Failed},
		{"the executor has no permission",
			assigned(says(
				"Applied=False/Forbidden Available=False/NotApplied Progressing=True/Progressing Degraded=True/Forbidden")),
			rollout.Failed},
		{"a Deployment that reports a failure",
			assigned(says("Applied=True/Applied Available=False/NotReady Progressing=False/AsDesired Degraded=True/NotReady")),
			rollout.Failed},
		{"a wave that exceeds its timeout has failed, although it can still succeed",
			assigned(says("Applied=False/Pending Available=False/NotApplied Progressing=True/Progressing " +
				"Degraded=True/Timeout")),
			rollout.Failed},
		{"an object of another owner",
			assigned(says("Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay")),
			rollout.Failed},
		{"reported drift: new content may not be applied",
			assigned(says("Applied=False/Drifted Available=True/Ready Progressing=False/AsDesired Degraded=True/Drifted")),
			rollout.Failed},
		{"an observed object that does not exist",
			assigned(says("Applied=False/NotFound Available=False/NotApplied Progressing=False/AsDesired " +
				"Degraded=True/NotFound")),
			rollout.Failed},
		{"an object that differs from its manifest",
			assigned(says("Applied=False/Differs Available=True/Ready Progressing=False/AsDesired Degraded=True/Differs")),
			rollout.Failed},

		{"a kind that the member does not serve", assigned(says(unknown)), rollout.Failed},
		{"another Work may define the kind, which the agent detects when it retries", assigned(says(allWell), says(unknown)),
			rollout.Progressing},
		{"a field conflict", assigned(says(conflict)), rollout.Failed},
		{"another Work may have released the object, which resolves the conflict", assigned(says(conflict), says(allWell)),
			rollout.Progressing},
		{"an available but degraded Work has not succeeded",
			assigned(says("Applied=True/Applied Available=True/Ready Degraded=True/Conflict"), says(allWell)),
			rollout.Progressing},
		{"a rejected object of another Work stays a failure", assigned(says(unknown), says(rejected)), rollout.Failed},

		{"a Work that is progressing", assigned(says(onItsWay)), rollout.Progressing},
		{"a Job runs", assigned(says(onItsWay + " Complete=False/Progressing")), rollout.Progressing},
		{"a Job has completed", assigned(says(allWell + " Complete=True/Completed")), rollout.Succeeded},
		{"an attempt has failed and is retried",
			assigned(says("Applied=False/Failed Available=False/NotApplied Progressing=True/Progressing " +
				"Degraded=False/AsDesired")),
			rollout.Progressing},
		{"the object to be replaced is still being deleted on the member",
			assigned(says(
				"Applied=False/Terminating Available=False/NotApplied Progressing=True/Progressing Degraded=False/AsDesired")),
			rollout.Progressing},
		{"the readiness is unknown",
			assigned(says("Applied=True/Applied Available=False/Unknown Progressing=False/AsDesired Degraded=False/AsDesired")),
			rollout.Progressing},
		{"an object that existed before CreateOnly counts as applied", assigned(says(allWell)), rollout.Succeeded},
		{"the deletion of a removed object is not complete, but the desired objects are available",
			assigned(says("Applied=True/Applied Available=True/Ready Progressing=True/Progressing Degraded=False/AsDesired")),
			rollout.Succeeded},
		{"suspended before the Work was applied",
			assigned(says(
				"Applied=False/Suspended Available=False/NotApplied Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Progressing},
		{"suspended with a difference, which is neither a failure nor a success",
			assigned(says("Applied=False/Differs Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Progressing},
		{"suspended after the Work was available",
			assigned(says("Applied=True/Applied Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Succeeded},
		{"another agent that does not report Degraded",
			assigned(says("Applied=True/Applied Available=True/Ready")),
			rollout.Succeeded},
		{"another agent that does not report Available", assigned(says("Applied=True/Applied")), rollout.Progressing},
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
		{"the cluster has the revision, and its objects are available", assigned(says(allWell)), v1alpha1.ClusterAvailable},
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
		{"the health of an unreachable cluster is unknown", assigned(says(allWell)).but(old).but(waits).but(outOfReach),
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
