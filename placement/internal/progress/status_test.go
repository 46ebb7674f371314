package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// short formats the conditions as "Applied=True/Applied", except for those that package readycondition derives from
// them, which checkReady checks.
func short(conditions []metav1.Condition) string {
	var parts []string
	for _, c := range conditions {
		if readycondition.Is(c.Type) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(parts, " ")
}

// checkReady checks that Ready is True exactly if all objects are applied and available, and the WorkSet is neither
// progressing nor degraded.
func checkReady(t *testing.T, conditions []metav1.Condition) {
	t.Helper()
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(conditions, kind) }
	want := isTrue(v1alpha1.ConditionApplied) && isTrue(v1alpha1.ConditionAvailable) &&
		!isTrue(v1alpha1.ConditionProgressing) && !isTrue(v1alpha1.ConditionDegraded)
	require.Equal(t, want, isTrue(v1alpha1.ConditionReady), "condition Ready")
	require.Equal(t, isTrue(v1alpha1.ConditionDegraded), isTrue(v1alpha1.ConditionStalled), "condition Stalled")
}

func named(name string, c Cluster) Cluster {
	c.Name = name
	return c
}

func phase(phase v1alpha1.RolloutPhase, message string) v1alpha1.RolloutStatus {
	return v1alpha1.RolloutStatus{Revision: "r2", Phase: phase, Message: message}
}

// workWithMessage returns a Work like workWith, with a message.
func workWithMessage(conditions, message string) Work {
	return workWith(conditions).with(func(w *Work) { w.Message = message })
}

func TestStatus(t *testing.T) {
	old := func(c *Cluster) { c.Revision = "r1" }
	noRevision := func(c *Cluster) { c.Revision, c.Works = "", nil }
	blocked := func(c *Cluster) { c.Hold = rollout.HoldApproval }
	unchosen := func(c *Cluster) { c.Chosen = false }
	healthy, failed := assigned(workWith(ready)), assigned(workWithMessage(rejected, "apps/Deployment shop/web: Invalid."))
	leaves := assigned(workWithMessage("Applied=False/CleaningUp Progressing=True/CleaningUp",
		"Waiting for the deletion of 2 objects.").with(deleting)).
		with(
			unchosen)
	done := phase(v1alpha1.PhaseSucceeded, "Complete: 2 of 2 clusters at r2.")
	rolledBack := phase(v1alpha1.PhaseRolledBack, "Rolled back: 2 of 2 clusters at r1. 1 cluster failed, and maxFailures "+
		"allows 0: a.")
	rolledBack.StableRevision, rolledBack.Rollback = "r1", &v1alpha1.RollbackStatus{}
	invalid := Problem{v1alpha1.ReasonInvalid, "spec.rollout.stages: is required"}

	for _, test := range []struct {
		reason     string
		observed   Observed
		conditions string
		message    string
		counts     v1alpha1.ClusterCounts
	}{
		{
			"all clusters are available",
			Observed{Revision: "r2", Rollout: done, Clusters: []Cluster{named("a", healthy), named("b", healthy)}},
			"Applied=True/Applied Available=True/Available Progressing=False/Succeeded Degraded=False/AsDesired",
			"Revision r2 is available on all 2 clusters.",
			v1alpha1.ClusterCounts{Total: 2, Updated: 2, Applied: 2, Available: 2},
		},
		{
			"the message for one cluster",
			Observed{Revision: "r2", Rollout: done, Clusters: []Cluster{healthy}},
			"Applied=True/Applied Available=True/Available Progressing=False/Succeeded Degraded=False/AsDesired",
			"Revision r2 is available on 1 cluster.",
			v1alpha1.ClusterCounts{Total: 1, Updated: 1, Applied: 1, Available: 1},
		},
		{
			"without clusters Available is False",
			Observed{Revision: "r2", Rollout: phase(v1alpha1.PhaseSucceeded, "The rollout has no clusters.")},
			"Applied=False/NoClusters Available=False/NoClusters Progressing=False/Succeeded Degraded=False/AsDesired",
			noClusters,
			v1alpha1.ClusterCounts{},
		},
		{
			"a pending cluster with an older revision lacks nothing; an approval does not degrade the WorkSet",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhaseWaitingForApproval, "Waiting for the approval after stage canary."),
				Clusters: []Cluster{named("a", healthy), named("b", healthy).with(old).with(blocked)},
			},
			"Applied=True/Applied Available=True/Available Progressing=True/WaitingForApproval Degraded=False/AsDesired",
			"Revision r2 is assigned to 1 of 2 clusters: 1 available, 1 pending. Waiting for the approval after stage canary.",
			v1alpha1.ClusterCounts{Total: 2, Updated: 1, Applied: 2, Available: 2},
		},
		{
			"a pending cluster without a revision lacks all content, so Applied is False",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhasePaused, "Paused: 1 of 2 clusters at r2."),
				Clusters: []Cluster{named("a", healthy), named("b", healthy).with(noRevision).with(blocked)},
			},
			"Applied=False/NotApplied Available=False/NotAvailable Progressing=False/Paused Degraded=False/AsDesired",
			"Revision r2 is assigned to 1 of 2 clusters: 1 available, 1 pending. The rollout is paused.",
			v1alpha1.ClusterCounts{Total: 2, Updated: 1, Applied: 1, Available: 1},
		},
		{
			"a rollout that is paused before its first cluster has applied nothing",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhasePaused, "Paused: 0 of 1 cluster at r2."),
				Clusters: []Cluster{named("a", healthy).with(noRevision).with(blocked)},
			},
			"Applied=False/NotApplied Available=False/NotAvailable Progressing=False/Paused Degraded=False/AsDesired",
			"Revision r2 is assigned to 0 of 1 cluster: 1 pending. The rollout is paused.",
			v1alpha1.ClusterCounts{Total: 1},
		},
		{
			"a cluster that is being updated lacks content",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhaseProgressing, "Updating: 0 of 1 cluster at r2, 1 progressing."),
				Clusters: []Cluster{healthy.with(old)},
			},
			"Applied=False/NotApplied Available=True/Available Progressing=True/Progressing Degraded=False/AsDesired",
			"Revision r2 is assigned to 0 of 1 cluster: 1 progressing.",
			v1alpha1.ClusterCounts{Total: 1, Applied: 1, Available: 1},
		},
		{
			"the objects are applied, but not available",
			Observed{Revision: "r2", Rollout: phase(v1alpha1.PhaseProgressing, ""),
				Clusters: []Cluster{assigned(workWith(updating))}},
			"Applied=True/Applied Available=False/NotAvailable Progressing=True/Progressing Degraded=False/AsDesired",
			"Revision r2 is assigned to 1 of 1 cluster: 1 progressing.",
			v1alpha1.ClusterCounts{Total: 1, Updated: 1, Applied: 1},
		},
		{
			"an unreachable cluster counts as applied by its last report, but not as available",
			Observed{Revision: "r2", Rollout: done,
				Clusters: []Cluster{named("a", healthy), named("b", healthy).with(unreachable)}},
			"Applied=True/Applied Available=False/NotAvailable Progressing=False/Succeeded Degraded=False/AsDesired",
			"Revision r2 is assigned to 2 of 2 clusters: 1 available, 1 unreachable.",
			v1alpha1.ClusterCounts{Total: 2, Updated: 2, Applied: 2, Available: 1, Unknown: 1},
		},
		{
			"the message starts with the tolerated failures, and names the first failed cluster",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhaseProgressing, ""),
				Clusters: []Cluster{named("c", failed), named("b", failed), named("a", healthy)},
			},
			"Applied=False/NotApplied Available=False/NotAvailable Progressing=True/Progressing Degraded=True/ClustersFailed",
			"2 of 3 clusters failed, first b: apps/Deployment shop/web: Invalid. Revision r2 is assigned to 3 of 3 clusters: " +
				"1 available, 2 failed.",
			v1alpha1.ClusterCounts{Total: 3, Updated: 3, Applied: 1, Available: 1, Failed: 2},
		},
		{
			"an override error is reported before failed clusters",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhaseProgressing, ""),
				Clusters: []Cluster{named("a", failed), named("b", healthy).with(problem), named("c", healthy)},
			},
			"Applied=False/NotApplied Available=False/NotAvailable Progressing=True/Progressing Degraded=True/OverrideFailed",
			"No revision can be assigned to 1 of 3 clusters, b: override 1: the label is not there. Revision r2 is assigned " +
				"to 3 of 3 clusters: 1 available, 2 failed.",
			v1alpha1.ClusterCounts{Total: 3, Updated: 3, Applied: 1, Available: 1, Failed: 2},
		},
		{
			"a cluster with an override error lacks content, also while the rollout is paused",
			Observed{Revision: "r2", Rollout: phase(v1alpha1.PhasePaused, "Paused."),
				Clusters: []Cluster{healthy.with(noRevision).with(blocked).with(problem)}},
			"Applied=False/NotApplied Available=False/NotAvailable Progressing=False/Paused Degraded=True/OverrideFailed",
			"No revision can be assigned to 1 of 1 cluster, east: override 1: the label is not there. Revision r2 is assigned " +
				"to 0 of 1 cluster: 1 failed. The rollout is paused.",
			v1alpha1.ClusterCounts{Total: 1, Failed: 1},
		},
		{
			"a cluster that exceeds the progress deadline is reported in addition",
			Observed{
				Revision: "r2", Clusters: []Cluster{named("a", healthy), named("b", assigned(workWith(updating)))},
				Rollout: v1alpha1.RolloutStatus{Revision: "r2", Phase: v1alpha1.PhaseSoaking, Message: "Waiting.",
					RolloutCounts: v1alpha1.RolloutCounts{TimedOut: 1}},
			},
			"Applied=True/Applied Available=False/NotAvailable Progressing=True/Soaking Degraded=False/AsDesired",
			"Revision r2 is assigned to 2 of 2 clusters: 1 available, 1 progressing. Progress deadline exceeded on 1 cluster. " +
				"Waiting.",
			v1alpha1.ClusterCounts{Total: 2, Updated: 2, Applied: 2, Available: 1},
		},
		{
			"a halted rollout degrades the WorkSet",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhaseFailed, "1 cluster failed, and maxFailures allows 0: a."),
				Clusters: []Cluster{named("a", failed), named("b", healthy).with(old).with(blocked)},
			},
			"Applied=False/NotApplied Available=False/NotAvailable Progressing=False/Failed Degraded=True/RolloutHalted",
			"The rollout is halted. 1 cluster failed, and maxFailures allows 0: a. a: apps/Deployment shop/web: Invalid. The " +
				"rollout continues when fewer clusters fail, or with another revision. Revision r2 is assigned to 1 of 2 " +
				"clusters: 1 pending, 1 failed.",
			v1alpha1.ClusterCounts{Total: 2, Updated: 1, Applied: 1, Available: 1, Failed: 1},
		},
		{
			"the halt of an earlier revision is ignored",
			Observed{
				Revision: "r3", Rollout: phase(v1alpha1.PhaseFailed, "1 cluster failed, and maxFailures allows 0: a."),
				Clusters: []Cluster{healthy.with(blocked)},
			},
			"Applied=True/Applied Available=True/Available Progressing=False/Pending Degraded=False/AsDesired",
			"Revision r3 is assigned to 0 of 1 cluster: 1 pending.",
			v1alpha1.ClusterCounts{Total: 1, Applied: 1, Available: 1},
		},
		{
			"after a rollback the clusters are up to date, but the WorkSet stays degraded",
			Observed{Revision: "r2", Rollout: rolledBack,
				Clusters: []Cluster{named("a", healthy).with(old), named("b", healthy).with(old)}},
			"Applied=True/Applied Available=True/Available Progressing=False/RolledBack Degraded=True/RolloutHalted",
			"Rolled back: 2 of 2 clusters at r1. 1 cluster failed, and maxFailures allows 0: a. Revision r2 is not retried. " +
				"Change the WorkSet to roll out another revision.",
			v1alpha1.ClusterCounts{Total: 2, Applied: 2, Available: 2},
		},
		{
			"a problem of the WorkSet makes Applied False, although the clusters are available",
			Observed{Revision: "r2", Rollout: done, Clusters: []Cluster{healthy},
				Problems: []Problem{{v1alpha1.ReasonWriteFailed, "no"}, invalid}},
			"Applied=False/Invalid Available=True/Available Progressing=False/Succeeded Degraded=True/Invalid",
			"spec.rollout.stages: is required (1 more problem). Revision r2 is available on 1 cluster.",
			v1alpha1.ClusterCounts{Total: 1, Updated: 1, Applied: 1, Available: 1},
		},
		{
			"a missing Placement is reported instead of missing clusters",
			Observed{Problems: []Problem{
				{v1alpha1.ReasonPlacementNotFound, "Placement eu is not there: create it, or remove the reference."}}},
			"Applied=False/PlacementNotFound Available=False/NoClusters Progressing=False/Pending " +
				"Degraded=True/PlacementNotFound",
			"Placement eu is not there: create it, or remove the reference.",
			v1alpha1.ClusterCounts{},
		},
		{
			"a problem without a reason gets a valid reason",
			Observed{Problems: []Problem{{"", "Something is wrong."}}},
			"Applied=False/Invalid Available=False/NoClusters Progressing=False/Pending Degraded=True/Invalid",
			"Something is wrong.",
			v1alpha1.ClusterCounts{},
		},
		{
			"clusters that are left are not part of the total",
			Observed{Revision: "r2", Rollout: done, Clusters: []Cluster{named("a", healthy), named("b", leaves),
				named("c", leaves).with(func(c *Cluster) { c.Works = nil })}},
			"Applied=True/Applied Available=True/Available Progressing=False/Succeeded Degraded=False/AsDesired",
			"Revision r2 is available on 1 cluster. Objects are being removed from 1 cluster, b: " +
				"Waiting for the deletion of 2 objects.",
			v1alpha1.ClusterCounts{Total: 1, Updated: 1, Applied: 1, Available: 1, Leaving: 1},
		},
		{
			"a WorkSet that is being deleted leaves all clusters, and ignores failures",
			Observed{
				Revision: "r2", Rollout: phase(v1alpha1.PhaseFailed, "1 cluster failed, and maxFailures allows 0: "+
					"a."), Deleting: true,
				Clusters: []Cluster{named("a", failed).with(unreachable), named("b", leaves)},
			},
			"Applied=False/Deleting Available=False/Deleting Progressing=True/Deleting Degraded=False/AsDesired",
			"The WorkSet is being deleted. Objects are being removed from 2 clusters, first a: The cluster is unreachable.",
			v1alpha1.ClusterCounts{Leaving: 2},
		},
		{
			"a problem that blocks the deletion is reported",
			Observed{Deleting: true, Problems: []Problem{{v1alpha1.ReasonWriteFailed, "Work web-0 of a cannot be deleted."}}},
			"Applied=False/Deleting Available=False/Deleting Progressing=True/Deleting Degraded=True/WriteFailed",
			"Work web-0 of a cannot be deleted. The WorkSet is being deleted.",
			v1alpha1.ClusterCounts{},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.observed.Now, test.observed.Generation = noon, 7
			got := Status(test.observed)
			require.Equal(t, test.conditions, short(got.Conditions))
			checkReady(t, got.Conditions)
			require.Equal(t, test.message, got.Message)
			require.Equal(t, test.counts, got.Counts)
			require.Equal(t, int64(7), got.ObservedGeneration)
			for _, c := range got.Conditions {
				require.Equal(t, int64(7), c.ObservedGeneration)
			}
		})
	}
}

// TestStatus_ListsClusters checks that clusters are sorted by urgency, and by name within a state.
func TestStatus_ListsClusters(t *testing.T) {
	blocked := func(c *Cluster) { c.Hold, c.Revision = rollout.HoldConcurrency, "r1" }
	got := Status(Observed{Now: noon, Revision: "r2", Clusters: []Cluster{
		named("i", assigned(workWith(ready))).with(func(c *Cluster) { c.Replicas = new(int32(3)) }),
		named("h", assigned(workWith(ready))).with(blocked),
		named("g", assigned(workWith(ready).with(unobserved))),
		named("f", assigned(workWith(ready))).with(notCurrent),
		named("fa", assigned(workWith(ready))).with(func(c *Cluster) { c.Revision = "r1" }),
		named("e", assigned(workWithMessage(updating, "1 of 3 replicas are ready"))),
		named("d", assigned(workWith(ready))).with(func(c *Cluster) { c.Chosen = false }),
		named("c", assigned(workWith(ready))).with(unreachable),
		named("b", assigned(workWithMessage(ready, "well"), workWithMessage(unknown, "kind"),
			workWithMessage(rejected, "worst"), workWithMessage(rejected, "worse"))),
		named("a", assigned(workWith(rejected).with(func(w *Work) { w.Message = "" }))),
	}})
	require.Zero(t, got.OmittedClusters)
	want := []v1alpha1.ClusterSummary{
		{Name: "a", State: v1alpha1.ClusterFailed, Revision: "r2", Message: "Rejected."},
		{Name: "b", State: v1alpha1.ClusterFailed, Revision: "r2", Message: "worse"},
		{Name: "c", State: v1alpha1.ClusterUnknown, Revision: "r2", Message: "The cluster is unreachable."},
		{Name: "d", State: v1alpha1.ClusterLeaving, Revision: "r2", Message: "The Works are being deleted."},
		{Name: "e", State: v1alpha1.ClusterProgressing, Revision: "r2", Message: "1 of 3 replicas are ready"},
		{Name: "f", State: v1alpha1.ClusterProgressing, Revision: "r2", Message: "The Works are being written."},
		{Name: "fa", State: v1alpha1.ClusterProgressing, Revision: "r1", Message: "The Works are being written."},
		{Name: "g", State: v1alpha1.ClusterProgressing, Revision: "r2",
			Message: "The agent has not reported on the Works yet."},
		{Name: "h", State: v1alpha1.ClusterPending, Revision: "r1",
			Message: "Waiting until fewer clusters are being updated."},
		{Name: "i", State: v1alpha1.ClusterAvailable, Revision: "r2", Replicas: new(int32(3))},
	}
	if diff := cmp.Diff(want, got.Clusters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestConditions_ReportTheWorst checks that a condition names the cluster with the most urgent state, not the first one
// by name.
func TestConditions_ReportTheWorst(t *testing.T) {
	got := Status(Observed{Now: noon, Revision: "r2", Clusters: []Cluster{
		named("d", assigned(workWithMessage(rejected, "no"))), named("a", assigned(workWith(ready).with(unobserved))),
		named("b", assigned(workWithMessage(rejected, "never"))), named("c", assigned(workWith(updating))),
	}})
	message := func(kind string) string { return meta.FindStatusCondition(got.Conditions, kind).Message }
	require.Equal(t, "Objects are not applied on 3 of 4 clusters, first b: never.", message(v1alpha1.ConditionApplied))
	require.Equal(t, "Objects are not available on 4 of 4 clusters, first b: never.", message(v1alpha1.ConditionAvailable))
	require.Equal(t, "2 of 4 clusters failed, first b: never.", message(v1alpha1.ConditionDegraded))
}

func TestBlockedMessage_AllHoldReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range []rollout.HoldReason{
		rollout.HoldConcurrency, rollout.HoldOrder, rollout.HoldApproval, rollout.HoldTime, rollout.HoldPaused,
		rollout.HoldStopped, rollout.HoldFailures, "Moon",
	} {
		message := blockedMessage(reason)
		require.False(t, seen[message], message)
		seen[message] = true
	}
	require.True(t, seen["Waiting: Moon."], "an unknown reason is part of the message")
}

func TestStatus_Revisions(t *testing.T) {
	at := func(name, revision string) Cluster {
		return named(name, assigned(workWith(ready))).with(func(c *Cluster) { c.Revision = revision })
	}
	o := Observed{Now: noon, Revision: "r66", Clusters: []Cluster{
		at("a", "r66"), at("b", "r60"), at("c", "r60").with(func(c *Cluster) { c.Chosen = false }), at("d", ""),
	}}
	for i := range 67 {
		o.Revisions = append(o.Revisions, v1alpha1.RevisionSummary{Name: fmt.Sprintf("r%d", i), Number: int64(i),
			Clusters: 99})
	}
	got := Status(o)
	require.Len(t, got.Revisions, maxRevisions)
	require.Equal(t, "r66", got.Revisions[0].Name, "the newest first")
	require.Equal(t, int32(99), o.Revisions[0].Clusters, "the input is not changed")
	counted := map[string]int32{}
	for _, revision := range got.Revisions {
		if revision.Clusters > 0 {
			counted[revision.Name] = revision.Clusters
		}
	}
	require.Equal(t, map[string]int32{"r60": 1, "r66": 1}, counted, "clusters that are left are not counted")
}

// TestConditions_KeepTransitionTimes checks that a condition keeps its time while its status does not change, and that
// conditions of other clients are kept.
func TestConditions_KeepTransitionTimes(t *testing.T) {
	o := Observed{Now: noon, Generation: 1, Revision: "r2", Clusters: []Cluster{assigned(workWith(updating))}}
	o.Before.Conditions = []metav1.Condition{condition("Custom", metav1.ConditionTrue, "Mine", 0)}
	o.Before = Status(o)
	require.Equal(t, "Custom", o.Before.Conditions[0].Type)

	o.Now, o.Generation, o.Clusters = noon.Add(time.Hour), 2, []Cluster{assigned(workWith(ready))}
	o.Before.Conditions[0].Status = metav1.ConditionFalse
	got := Status(o)
	at := func(kind string) time.Time {
		return meta.FindStatusCondition(got.Conditions, kind).LastTransitionTime.Time
	}
	require.Equal(t, noon, at(v1alpha1.ConditionApplied))
	require.Equal(t, noon.Add(time.Hour), at(v1alpha1.ConditionAvailable))
	require.Equal(t, metav1.ConditionFalse, got.Conditions[0].Status)
}
