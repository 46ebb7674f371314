package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// published is a cluster of the PlacementDecisions, including a cluster that waits to be left.
type published struct {
	cluster          *scheduler.Cluster
	reason, replaces string
}

// asChosen returns the selected clusters.
func asChosen(chosen []scheduler.Choice) []published {
	all := make([]published, len(chosen))
	for i, choice := range chosen {
		all[i] = published{cluster: choice.Cluster, reason: v1alpha1.ReasonScheduled}
	}
	return all
}

// maxMessage is the maximum length in bytes of the message of a condition and of the note of an Event.
const maxMessage = 1024

// summary is the content of a placement's status after a decision.
type summary struct {
	decided                  bool // false: no decision was made, and the former one stays
	desired, selected, ready int
	scheduled                bool
	reason, message          string
	recent                   []v1alpha1.EvictionCount
	properties               properties
	observed                 observed
	access                   access
	explanation              *v1alpha1.Explanation
}

// failed returns the summary of a decision that failed. The error of an invalid policy names the field already.
func failed(reason string, err error) summary {
	message := err.Error()
	if reason == v1alpha1.ReasonDecideFailed {
		message = "The decision failed and is retried; the selected clusters stay the same. Error: " + message
	}
	return summary{reason: reason, message: message}
}

// summarize returns the summary of a step with the scheduler's message.
func summarize(s *step, text string) summary {
	result, all := &s.result, s.all
	v := summary{
		decided: true, desired: result.Wanted, selected: len(all), scheduled: true, reason: v1alpha1.ReasonScheduled,
		message: text, recent: s.recent,
		observed: observedOf(all),
	}
	if v.desired < 0 { // PickAll
		v.desired = len(result.Chosen)
	}
	for _, p := range all {
		if p.cluster.Healthy {
			v.ready++
		}
	}
	if result.Missing() > 0 || result.Wanted < 0 && len(result.Chosen) == 0 {
		v.scheduled, v.reason = false, v1alpha1.ReasonUnschedulable
	}
	return v
}

// status returns the status of a placement that results from a summary.
func (v summary) status(placement *v1alpha1.Placement, now metav1.Time) v1alpha1.PlacementStatus {
	status := *placement.Status.DeepCopy()
	status.ObservedGeneration = placement.Generation
	if v.decided {
		status.DecidedGeneration = placement.Generation
		status.DesiredClusters, status.SelectedClusters, status.ReadyClusters = int32(v.desired), int32(v.selected),
			int32(v.ready)
		status.Rescheduled = placement.Annotations[v1alpha1.RescheduleAnnotation]
		status.RecentEvictions, status.Explanation = v.recent, v.explanation
		v.properties.set(&status, placement.Generation, now)
		v.observed.set(&status, placement.Generation, now)
		v.access.set(&status, placement.Generation, now)
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: v.reason, Message: bounded.Text(v.message,
			maxMessage),
		ObservedGeneration: placement.Generation, LastTransitionTime: now,
	}
	if v.scheduled {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	var failure *metav1.Condition
	if !v.scheduled && v.reason != v1alpha1.ReasonDecideFailed { // a failed decision is retried
		failure = &condition
	}
	readyRule.Set(&status.Conditions, placement.Generation, now.Time, failure)
	return status
}

// readyRule derives the condition Ready of a Placement.
var readyRule = readycondition.Rule{Required: []string{v1alpha1.ConditionScheduled}}

// transitioned reports whether a status differs from the former one in more than its message, so that an Event is due.
func transitioned(before, after *v1alpha1.PlacementStatus) bool {
	if before.SelectedClusters != after.SelectedClusters {
		return true
	}
	a, b := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionScheduled),
		meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionScheduled)
	return a == nil || b == nil || a.Status != b.Status || a.Reason != b.Reason
}

// reschedule reports whether a placement must be decided without regard to its current clusters. The removal of the
// annotation is not such a request. Neither is the annotation of a Placement that was not decided yet: backups and
// manifests contain the values of earlier requests.
func reschedule(placement *v1alpha1.Placement) bool {
	value := placement.Annotations[v1alpha1.RescheduleAnnotation]
	return value != "" && value != placement.Status.Rescheduled && placement.Status.DecidedGeneration != 0
}

// names reports whether a policy can select a cluster of this name.
func names(policy *v1alpha1.PlacementPolicy, cluster string) bool {
	return policy.Type != v1alpha1.PickFixed || slices.Contains(policy.ClusterNames, cluster)
}

// cachedMessage is the message of a decision and the numbers that it contains.
type cachedMessage struct {
	text    string
	numbers numbers
}

type numbers struct {
	chosen, wanted, feasible, total, evicted int
	rejectedBy                               string
	// selected clusters that do not report their APIs, if the policy requires some
	silent    int
	unhealthy int // selected clusters without failover
}

func numbersOf(placement *v1alpha1.Placement, s *step) numbers {
	r := &s.result
	n := numbers{
		chosen: len(r.Chosen), wanted: r.Wanted, feasible: r.Feasible, total: r.Total, evicted: len(s.excluded),
		rejectedBy: strings.Join(append(slices.Clone(r.RejectedBy), r.Hints...), ","),
	}
	for _, p := range s.all {
		if p.cluster.APIs == nil && len(placement.Spec.Policy.RequiredAPIs) > 0 {
			n.silent++
		}
		if !p.cluster.Healthy && placement.Spec.Failover == nil {
			n.unhealthy++
		}
	}
	return n
}

const failoverUnset = "since spec.failover is not set"

// unhealthyStay returns the part of the message about unhealthy clusters that stay, with the field that permits to
// leave them.
func unhealthyStay(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 chosen cluster is not known to be healthy and stays, " + failoverUnset
	default:
		return fmt.Sprintf("; %d chosen clusters are not known to be healthy and stay, %s", n, failoverUnset)
	}
}

// unreportedAPIs returns the part of the message about selected clusters that do not report their APIs.
func unreportedAPIs(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 of them does not report its APIs"
	default:
		return fmt.Sprintf("; %d of them do not report their APIs", n)
	}
}

// currentMessage returns the message in the status of a placement if a decision with this summary has the same message.
// Empty: the decision differs.
func currentMessage(placement *v1alpha1.Placement, v summary) string {
	condition := meta.FindStatusCondition(placement.Status.Conditions, v1alpha1.ConditionScheduled)
	if condition == nil || condition.ObservedGeneration != placement.Generation || condition.Reason != v.reason ||
		int(placement.Status.SelectedClusters) != v.selected || int(placement.Status.DesiredClusters) != v.desired {
		return ""
	}
	return condition.Message
}
