package health

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
)

// forced is the record of the removal of a MemberAddon. Nil: it was not forced. Its time follows from the object alone, so that whoever looks makes the
// same record of it: that of the condition, or of the deletion where the condition was there before.
func forced(member string, a *v1alpha1.MemberAddon) *v1alpha1.ForcedRemoval {
	condition := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionDegraded)
	if a.DeletionTimestamp == nil || condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != v1alpha1.ReasonDeadlineExceeded {
		return nil
	}
	at := condition.LastTransitionTime
	if at.Before(a.DeletionTimestamp) {
		at = *a.DeletionTimestamp
	}
	return &v1alpha1.ForcedRemoval{Member: member, Time: at.Rfc3339Copy(), Message: bounded.Text(condition.Message, words.MaxPart)}
}

// forced are the removals to tell of: those that are known, and those that were told of already.
func (s *summary) forced() []v1alpha1.ForcedRemoval {
	all := slices.Clone(s.Forced)
	for i := range s.Members {
		if record := s.Members[i].Forced; record != nil {
			all = append(all, *record)
		}
	}
	for i := range all { // as they come back from the API
		all[i].Time, all[i].Message = all[i].Time.Rfc3339Copy(), bounded.Text(all[i].Message, words.MaxPart)
	}
	slices.SortFunc(all, func(a, b v1alpha1.ForcedRemoval) int { return strings.Compare(a.Message, b.Message) })
	// What is known now goes before what was told: the message may have changed.
	all = append(all, s.Before.ForcedRemovals...)
	slices.SortStableFunc(all, func(a, b v1alpha1.ForcedRemoval) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), strings.Compare(a.Member, b.Member))
	})
	all = slices.CompactFunc(all, func(a, b v1alpha1.ForcedRemoval) bool { return a.Member == b.Member && a.Time.Equal(&b.Time) })
	if len(all) == 0 {
		return nil
	}
	return all[:min(len(all), v1alpha1.MaxForcedRemovals)]
}
