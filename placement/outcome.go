package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// groups tell the decision group of a cluster.
type groups []group

type group struct {
	name     string
	selector labels.Selector
}

func newGroups(specs []v1alpha1.DecisionGroup) (groups, error) {
	var made groups
	for i := range specs {
		selector, err := metav1.LabelSelectorAsSelector(&specs[i].Selector)
		if err != nil {
			return nil, fmt.Errorf("spec.decisionGroups[%d].selector: %w", i, err)
		}
		made = append(made, group{specs[i].Name, selector})
	}
	return made, nil
}

func (g groups) of(cluster *scheduler.Cluster) string {
	for _, group := range g {
		if group.selector.Matches(labels.Set(cluster.Labels)) {
			return group.name
		}
	}
	return ""
}

// decisions are what was chosen, group by group and the best of each first.
func (g groups) decisions(chosen []scheduler.Choice) []v1alpha1.ClusterDecision {
	rank := map[string]int{"": len(g)}
	for i, group := range g {
		rank[group.name] = i
	}
	decisions := make([]v1alpha1.ClusterDecision, 0, len(chosen))
	for _, choice := range chosen {
		decisions = append(decisions, v1alpha1.ClusterDecision{ClusterName: choice.Cluster.Name, Group: g.of(choice.Cluster), Reason: v1alpha1.ReasonScheduled})
	}
	slices.SortStableFunc(decisions, func(a, b v1alpha1.ClusterDecision) int { return rank[a.Group] - rank[b.Group] })
	return decisions
}

// verdict is what is said of a placement.
type verdict struct {
	desired, selected, ready int
	scheduled                bool
	reason, message          string
}

// judge says what a decision means for the placement. The sentence is the scheduler's.
func judge(result *scheduler.Result, sentence string) verdict {
	v := verdict{desired: result.Wanted, selected: len(result.Chosen), scheduled: true, reason: v1alpha1.ReasonScheduled, message: sentence}
	if v.desired < 0 { // all that can
		v.desired = v.selected
	}
	for _, choice := range result.Chosen {
		if choice.Cluster.Healthy {
			v.ready++
		}
	}
	if result.Missing() > 0 || result.Wanted < 0 && v.selected == 0 {
		v.scheduled, v.reason = false, v1alpha1.ReasonUnschedulable
	}
	return v
}

// status is the status of a placement after a verdict.
func (v verdict) status(placement *v1alpha1.Placement, now metav1.Time) v1alpha1.PlacementStatus {
	status := *placement.Status.DeepCopy()
	status.ObservedGeneration = placement.Generation
	status.DesiredClusters, status.SelectedClusters, status.ReadyClusters = int32(v.desired), int32(v.selected), int32(v.ready)
	status.Rescheduled = placement.Annotations[v1alpha1.RescheduleAnnotation]
	condition := metav1.Condition{
		Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: v.reason, Message: cut(v.message),
		ObservedGeneration: placement.Generation, LastTransitionTime: now,
	}
	if v.scheduled {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// cut bounds a message to what a condition takes.
func cut(message string) string {
	const limit = 1024
	if runes := []rune(message); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return message
}
