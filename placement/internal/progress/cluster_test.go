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

// workWith returns a Work with conditions in text form, as in "Applied=True/Applied Available=False/Progressing".
func workWith(text string) Work {
	var conditions []metav1.Condition
	for part := range strings.FieldsSeq(text) {
		kind, rest, _ := strings.Cut(part, "=")
		status, reason, _ := strings.Cut(rest, "/")
		conditions = append(conditions, condition(kind, metav1.ConditionStatus(status), reason, 0))
	}
	return Of(workOf(conditions...))
}

const (
	ready    = "Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired"
	updating = "Applied=True/Applied Available=False/Progressing Progressing=True/Progressing Degraded=False/AsDesired"
	rejected = "Applied=False/Rejected Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Rejected"
	unknown  = "Applied=False/UnknownKind Available=False/NotApplied Progressing=False/AsDesired Degraded=True/UnknownKind"
	conflict = "Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict"
)

// assigned returns a reachable cluster with the assigned revision r2.
func assigned(works ...Work) Cluster {
	return Cluster{Name: "east", Chosen: true, Reachable: true, Revision: "r2", Current: true, Works: works}
}

func (c Cluster) with(change func(*Cluster)) Cluster {
	change(&c)
	return c
}

func (w Work) with(change func(*Work)) Work {
	change(&w)
	return w
}

var (
	unreachable = func(c *Cluster) { c.Reachable = false }
	problem     = func(c *Cluster) { c.Problem = "override 1: the label is not there" }
	notCurrent  = func(c *Cluster) { c.Current = false }
	unobserved  = func(w *Work) { w.Generation = 4 }
	deleting    = func(w *Work) { w.Deleting = true }
)

func TestHealth(t *testing.T) {
	for _, test := range []struct {
		reason  string
		cluster Cluster
		want    rollout.Health
	}{
		{"all Works are applied and available", assigned(workWith(ready), workWith(ready)), rollout.Succeeded},
		{"the overrides delete all objects, so the cluster needs no Work", assigned(),
			rollout.Succeeded},

		{"a cluster with a Problem has failed, regardless of its Works",
			assigned(workWith(ready)).with(problem), rollout.Failed},
		{"a cluster with a Problem has failed, also if the cluster is unreachable",
			assigned(workWith(ready)).with(problem).with(unreachable),
			rollout.Failed},
		{"a cluster with a Problem has failed, also if its Works are outdated",
			assigned(workWith(ready)).with(problem).with(notCurrent), rollout.Failed},

		{"the last report of an unreachable cluster may be outdated",
			assigned(workWith(ready)).with(unreachable), rollout.Unknown},
		{"the last failure of an unreachable cluster may be outdated", assigned(workWith(rejected)).with(unreachable),
			rollout.Unknown},
		{"an unreachable cluster with unwritten Works",
			assigned(workWith(ready)).with(unreachable).with(notCurrent), rollout.Unknown},
		{"an unreachable cluster that has not observed the Work",
			assigned(workWith(ready).with(unobserved)).with(unreachable), rollout.Unknown},

		{"not all Works are written, and the existing one is available",
			assigned(workWith(ready)).with(notCurrent),
			rollout.Progressing},
		{"not all Works are written, and an existing one has failed",
			assigned(workWith(rejected)).with(notCurrent), rollout.Progressing},
		{"the cluster has no Works yet", assigned().with(notCurrent), rollout.Progressing},
		{"without a revision, the cluster cannot succeed", assigned().with(func(c *Cluster) { c.Revision = "" }),
			rollout.Progressing},
		{"the status is about the previous generation", assigned(workWith(ready).with(unobserved)), rollout.Progressing},
		{"the failure is about the previous generation", assigned(workWith(rejected).with(unobserved)), rollout.Progressing},
		{"one of two Works is observed", assigned(workWith(ready), workWith(ready).with(unobserved)), rollout.Progressing},
		{"the status is about a later generation, because the hub was restored",
			assigned(workWith(ready).with(func(w *Work) { w.Observed = 9 })), rollout.Progressing},
		{"the Work is not observed yet", assigned(Of(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1}})),
			rollout.Progressing},
		{"the Work is being deleted, and must be created again",
			assigned(workWith(ready).with(deleting)), rollout.Progressing},

		{"the member rejects an object permanently", assigned(workWith(rejected)), rollout.Failed},
		{"the member rejects an object of the second Work", assigned(workWith(ready), workWith(rejected)), rollout.Failed},
		{"an invalid Work",
			assigned(workWith(
				"Applied=False/Invalid Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Invalid")),
			rollout.Failed},
		{"the agent has no permission",
			assigned(workWith("Applied=False/AgentForbidden Available=False/NotApplied Progressing=False/AsDesired " +
				"Degraded=True/AgentForbidden")), rollout.Failed},
		{"the executor has no permission",
			assigned(workWith(
				"Applied=False/Forbidden Available=False/NotApplied Progressing=True/Progressing Degraded=True/Forbidden")),
			rollout.Failed},
		{"a Deployment that reports a failure",
			assigned(workWith(
				"Applied=True/Applied Available=False/NotReady Progressing=False/AsDesired Degraded=True/NotReady")),
			rollout.Failed},
		{"a wave that exceeds its timeout has failed, although it can still succeed",
			assigned(workWith("Applied=False/Pending Available=False/NotApplied Progressing=True/Progressing " +
				"Degraded=True/Timeout")),
			rollout.Failed},
		{"an object of another owner",
			assigned(workWith("Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay")),
			rollout.Failed},
		{"reported drift: new content may not be applied",
			assigned(workWith("Applied=False/Drifted Available=True/Ready Progressing=False/AsDesired Degraded=True/Drifted")),
			rollout.Failed},
		{"an observed object that does not exist",
			assigned(workWith("Applied=False/NotFound Available=False/NotApplied Progressing=False/AsDesired " +
				"Degraded=True/NotFound")),
			rollout.Failed},
		{"an object that differs from its manifest",
			assigned(workWith("Applied=False/Differs Available=True/Ready Progressing=False/AsDesired Degraded=True/Differs")),
			rollout.Failed},

		{"a kind that the member does not serve", assigned(workWith(unknown)), rollout.Failed},
		{"another Work may define the kind, which the agent detects when it retries",
			assigned(workWith(ready), workWith(unknown)),
			rollout.Progressing},
		{"a field conflict", assigned(workWith(conflict)), rollout.Failed},
		{"another Work may have released the object, which resolves the conflict",
			assigned(workWith(conflict), workWith(ready)),
			rollout.Progressing},
		{"an available but degraded Work has not succeeded",
			assigned(workWith("Applied=True/Applied Available=True/Ready Degraded=True/Conflict"), workWith(ready)),
			rollout.Progressing},
		{"a rejected object of another Work stays a failure",
			assigned(workWith(unknown), workWith(rejected)), rollout.Failed},

		{"a Work that is progressing", assigned(workWith(updating)), rollout.Progressing},
		{"a Job runs", assigned(workWith(updating + " Complete=False/Progressing")), rollout.Progressing},
		{"a Job has completed", assigned(workWith(ready + " Complete=True/Completed")), rollout.Succeeded},
		{"an attempt has failed and is retried",
			assigned(workWith("Applied=False/Failed Available=False/NotApplied Progressing=True/Progressing " +
				"Degraded=False/AsDesired")),
			rollout.Progressing},
		{"the object to be replaced is still being deleted on the member",
			assigned(workWith(
				"Applied=False/Terminating Available=False/NotApplied Progressing=True/Progressing Degraded=False/AsDesired")),
			rollout.Progressing},
		{"the readiness is unknown",
			assigned(workWith(
				"Applied=True/Applied Available=False/Unknown Progressing=False/AsDesired Degraded=False/AsDesired")),
			rollout.Progressing},
		{"an object that existed before CreateOnly counts as applied", assigned(workWith(ready)), rollout.Succeeded},
		{"the deletion of a removed object is not complete, but the desired objects are available",
			assigned(workWith(
				"Applied=True/Applied Available=True/Ready Progressing=True/Progressing Degraded=False/AsDesired")),
			rollout.Succeeded},
		{"suspended before the Work was applied",
			assigned(workWith(
				"Applied=False/Suspended Available=False/NotApplied Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Progressing},
		{"suspended with a difference, which is neither a failure nor a success",
			assigned(workWith(
				"Applied=False/Differs Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Progressing},
		{"suspended after the Work was available",
			assigned(workWith("Applied=True/Applied Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired")),
			rollout.Succeeded},
		{"another agent that does not report Degraded",
			assigned(workWith("Applied=True/Applied Available=True/Ready")),
			rollout.Succeeded},
		{"another agent that does not report Available", assigned(workWith("Applied=True/Applied")), rollout.Progressing},
	} {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want, test.cluster.Health())
		})
	}
}

func TestState(t *testing.T) {
	old := func(c *Cluster) { c.Revision = "r1" }
	noRevision := func(c *Cluster) { c.Revision, c.Works = "", nil }
	blocked := func(c *Cluster) { c.Hold = rollout.HoldOrder }
	unchosen := func(c *Cluster) { c.Chosen = false }
	for _, test := range []struct {
		reason  string
		cluster Cluster
		want    v1alpha1.ClusterState
	}{
		{"the cluster has the revision, and its objects are available", assigned(workWith(ready)), v1alpha1.ClusterAvailable},
		{"the cluster has the revision, and its objects are not ready",
			assigned(workWith(updating)), v1alpha1.ClusterProgressing},
		{"an available cluster at another revision is blocked", assigned(workWith(ready)).with(old).with(blocked),
			v1alpha1.ClusterPending},
		{"a progressing cluster at another revision is blocked", assigned(workWith(updating)).with(old).with(blocked),
			v1alpha1.ClusterPending},
		{"a cluster without a revision is blocked", assigned().with(noRevision).with(blocked), v1alpha1.ClusterPending},
		{"a cluster at another revision is being updated", assigned(workWith(ready)).with(old), v1alpha1.ClusterProgressing},
		{"a cluster without a revision is being updated", assigned().with(noRevision), v1alpha1.ClusterProgressing},
		{"a failed cluster at another revision is blocked",
			assigned(workWith(rejected)).with(old).with(blocked), v1alpha1.ClusterFailed},
		{"a cluster without a revision has a problem", assigned().with(noRevision).with(problem), v1alpha1.ClusterFailed},
		{"a blocked cluster has the revision", assigned(workWith(updating)).with(blocked),
			v1alpha1.ClusterProgressing},
		{"the health of an unreachable cluster is unknown",
			assigned(workWith(ready)).with(old).with(blocked).with(unreachable),
			v1alpha1.ClusterUnknown},
		{"a cluster that is not chosen is leaving, whatever its health",
			assigned(workWith(rejected)).with(unchosen).with(unreachable).with(problem),
			v1alpha1.ClusterLeaving},
	} {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want, test.cluster.State("r2"))
		})
	}
}

// TestHealth_AllDegradedReasons fails for a reason that is added to the agent, until this test states whether another
// Work of the cluster can resolve it.
func TestHealth_AllDegradedReasons(t *testing.T) {
	resolvable := map[string]bool{workv1alpha1.ReasonUnknownKind: true, workv1alpha1.ReasonConflict: true}
	for _, reason := range []string{
		workv1alpha1.ReasonInvalid, workv1alpha1.ReasonUnknownKind, workv1alpha1.ReasonNotFound, workv1alpha1.ReasonInTheWay,
		workv1alpha1.ReasonConflict,
		workv1alpha1.ReasonDrifted, workv1alpha1.ReasonDiffers, workv1alpha1.ReasonForbidden, workv1alpha1.ReasonRejected,
		workv1alpha1.ReasonNotReady,
		workv1alpha1.ReasonTimeout, workv1alpha1.ReasonAgentForbidden, workv1alpha1.ReasonNotAccepted,
	} {
		work := workWith(fmt.Sprintf("Applied=False/%[1]s Available=False/NotApplied Degraded=True/%[1]s", reason))
		alone, two := assigned(work), assigned(work, workWith(ready))
		require.Equal(t, rollout.Failed, alone.Health(), reason)
		require.Equal(t, resolvable[reason], two.Health() == rollout.Progressing, reason)
		require.Equal(t, !resolvable[reason], two.Health() == rollout.Failed, reason)
	}
}
