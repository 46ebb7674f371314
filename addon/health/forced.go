package health

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
)

// forced returns the record of a forced removal of a MemberAddon, or nil. The time depends only on the object, so that
// all controllers create the same record: it is the time of the condition, or of the deletion if the condition is
// older.
func forced(member string, a *v1alpha1.MemberAddon) *v1alpha1.ForcedRemoval {
	condition := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionDegraded)
	if a.DeletionTimestamp == nil || condition == nil || condition.Status != metav1.ConditionTrue ||
		condition.Reason != v1alpha1.ReasonDeadlineExceeded {
		return nil
	}
	at := condition.LastTransitionTime
	if at.Before(a.DeletionTimestamp) {
		at = *a.DeletionTimestamp
	}
	return &v1alpha1.ForcedRemoval{Member: member, Time: at.Rfc3339Copy(),
		Message: bounded.Text(condition.Message, messages.MaxPart)}
}

// forced returns the forced removals of the status: the observed ones and the recorded ones.
func (s *summary) forced() []v1alpha1.ForcedRemoval {
	all := slices.Clone(s.Forced)
	for i := range s.Members {
		if record := s.Members[i].Forced; record != nil {
			all = append(all, *record)
		}
	}
	for i := range all { // equal to the value that the API returns
		all[i].Time, all[i].Message = all[i].Time.Rfc3339Copy(), bounded.Text(all[i].Message, messages.MaxPart)
	}
	slices.SortFunc(all, func(a, b v1alpha1.ForcedRemoval) int { return strings.Compare(a.Message, b.Message) })
	// Observed records precede stored ones because the message may have changed.
	all = append(all, s.Before.ForcedRemovals...)
	slices.SortStableFunc(all, func(a, b v1alpha1.ForcedRemoval) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), strings.Compare(a.Member, b.Member))
	})
	all = slices.CompactFunc(all,
		func(a, b v1alpha1.ForcedRemoval) bool { return a.Member == b.Member && a.Time.Equal(&b.Time) })
	if len(all) == 0 {
		return nil
	}
	return all[:min(len(all), v1alpha1.MaxForcedRemovals)]
}
