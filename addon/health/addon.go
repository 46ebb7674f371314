package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// AddonObserved is what is known of an add-on on all members.
type AddonObserved struct {
	// Generation of the Addon that this is about.
	Generation int64
	// Before is its status as it is: a condition that stays as it is keeps its time.
	Before v1alpha1.AddonStatus
	// Now is the time of what changes. It must not be zero.
	Now time.Time
	// Deleting says that its deletion has begun.
	Deleting bool
	// Members that have a MemberAddon of it, in any order, each once.
	Members []Member
	// Awaited is how many members are to have one that have none yet.
	Awaited int
	// Placements of the install strategy in their order. They are passed on as they are, the first 16.
	Placements []v1alpha1.PlacementStatus
	// Problems of the add-on as a whole, in any order.
	Problems []Problem
	// Forced removals of members that have no MemberAddon any more, in any order. Those of Members and of Before need not be among them,
	// and may be.
	Forced []v1alpha1.ForcedRemoval
}

// Member is what matters of a MemberAddon, small enough to keep for all of a fleet.
type Member struct {
	Name string
	// Updated: it has what it is to have.
	Updated bool
	// The conditions of those names.
	Available, Degraded metav1.ConditionStatus
	// Removing says that its deletion has begun.
	Removing bool
	// Message of its status, of at most 512 bytes.
	Message string
	// Forced is the record of its removal, if that was forced.
	Forced *v1alpha1.ForcedRemoval
}

// MemberOf takes from the MemberAddon of a member what matters. It keeps nothing of it but strings.
func MemberOf(name string, a *v1alpha1.MemberAddon) Member {
	status := func(kind string) metav1.ConditionStatus {
		condition := meta.FindStatusCondition(a.Status.Conditions, kind)
		if condition == nil || a.Status.ObservedGeneration != a.Generation {
			return metav1.ConditionUnknown // it has not been looked at as it is
		}
		switch condition.Status { // the constants, so that what was decoded need not be kept
		case metav1.ConditionTrue:
			return metav1.ConditionTrue
		case metav1.ConditionFalse:
			return metav1.ConditionFalse
		}
		return metav1.ConditionUnknown
	}
	m := Member{
		Name: name, Available: status(v1alpha1.ConditionAvailable), Degraded: status(v1alpha1.ConditionDegraded),
		Removing: a.DeletionTimestamp != nil, Message: bounded.Text(a.Status.Message, words.MaxPart),
	}
	m.Updated = !m.Removing && a.Status.DesiredRevision != "" && a.Status.AppliedRevision == a.Status.DesiredRevision &&
		status(v1alpha1.ConditionManifestsApplied) == metav1.ConditionTrue
	m.Forced = forced(name, a)
	return m
}

// Status is what is to be said of an add-on on all members. It changes nothing of what it is given, and may share it.
//
// As long as nothing but Now and Before changes, and Before is what was said last, it says the same again.
func Status(o AddonObserved) v1alpha1.AddonStatus {
	s := &summary{AddonObserved: o}
	s.Problems = slices.SortedFunc(slices.Values(o.Problems), compareProblems)
	s.Placements = o.Placements[:min(len(o.Placements), maxPlacements)]
	if len(s.Placements) == 0 {
		s.Placements = nil // as it comes back from the API
	}
	s.count()
	conditions := set(o.Before.Conditions, []metav1.Condition{s.installed(), s.degraded(), s.available()},
		metav1.Condition{ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(o.Now)})
	addonReady.Set(&conditions, o.Generation, o.Now, nil)
	return v1alpha1.AddonStatus{
		ObservedGeneration: o.Generation,
		Message:            bounded.Text(s.message(), words.MaxSentence),
		Counts:             s.counts,
		Placements:         s.Placements,
		ForcedRemovals:     s.forced(),
		Conditions:         conditions,
	}
}

const maxPlacements = 16 // as the API has it

// summary sums up the members of an add-on.
type summary struct {
	AddonObserved
	counts        v1alpha1.AddonCounts
	firstDegraded *Member // the first that is degraded
	firstRemoved  *Member // the first that is being removed
}

func (s *summary) count() {
	first := func(was *Member, m *Member) *Member {
		if was == nil || cmp.Or(strings.Compare(m.Name, was.Name), strings.Compare(m.Message, was.Message)) < 0 {
			return m
		}
		return was
	}
	for i := range s.Members {
		m := &s.Members[i]
		s.counts.Total++
		if m.Degraded == metav1.ConditionTrue {
			s.counts.Degraded++
			s.firstDegraded = first(s.firstDegraded, m)
		}
		if m.Removing {
			s.counts.Removing++
			s.firstRemoved = first(s.firstRemoved, m)
			continue
		}
		if m.Updated {
			s.counts.Updated++
		}
		switch m.Available {
		case metav1.ConditionTrue:
			s.counts.Available++
		case metav1.ConditionUnknown:
			s.counts.Unknown++
		}
	}
}

// wanted is how many members are to have the add-on.
func (s *summary) wanted() int { return int(s.counts.Total-s.counts.Removing) + s.Awaited }

func (s *summary) installed() metav1.Condition {
	const kind = v1alpha1.ConditionInstalled
	switch {
	case s.Deleting:
		return not(kind, v1alpha1.ReasonRemoving, s.message())
	case len(s.Problems) > 0:
		return not(kind, s.Problems[0].reason(), s.Problems[0].words())
	case int(s.counts.Updated) < s.wanted():
		return not(kind, v1alpha1.ReasonUpdating, s.standing())
	}
	return is(kind, v1alpha1.ReasonUpdated, s.standing())
}

// available is about the members that have the add-on. Condition Installed says whether all of them have it.
func (s *summary) available() metav1.Condition {
	const kind = v1alpha1.ConditionAvailable
	wanted := s.counts.Total - s.counts.Removing
	message := fmt.Sprintf("Add-on is available on %d of %d members.", s.counts.Available, wanted)
	switch {
	case s.Deleting:
		return not(kind, v1alpha1.ReasonRemoving, s.message())
	case s.counts.Available < wanted:
		return not(kind, v1alpha1.ReasonNotReady, message)
	}
	return is(kind, v1alpha1.ReasonAvailable, message)
}

func (s *summary) degraded() metav1.Condition {
	const kind = v1alpha1.ConditionDegraded
	switch {
	case s.stuck():
		return is(kind, s.Problems[0].reason(), s.wrong())
	case s.halted() != nil:
		return is(kind, placementv1alpha1.ReasonRolloutHalted, s.wrong())
	case s.firstDegraded != nil:
		return is(kind, placementv1alpha1.ReasonClustersFailed, s.wrong())
	}
	return not(kind, v1alpha1.ReasonAsDesired, "")
}

func (s *summary) stuck() bool { return len(s.Problems) > 0 && !s.Problems[0].Retried }

// halted is the first placement whose rollout was halted, or taken back. Nil: there is none.
func (s *summary) halted() *v1alpha1.PlacementStatus {
	if s.Deleting {
		return nil
	}
	for i := range s.Placements {
		switch s.Placements[i].Rollout.Phase {
		case placementv1alpha1.PhaseFailed, placementv1alpha1.PhaseRollingBack, placementv1alpha1.PhaseRolledBack:
			return &s.Placements[i]
		}
	}
	return nil
}

// message is what people read: what is wrong, and then how far it is. Nothing in it goes on with time.
func (s *summary) message() string {
	switch {
	case !s.Deleting:
		return words.Join(s.wrong(), s.standing(), s.waiting(), s.goodbye())
	case s.counts.Total == 0:
		return words.Join(s.wrong(), "It is being deleted.")
	}
	return words.Join(s.wrong(), fmt.Sprintf("It is being deleted: %s to go, %d on the way.", members(int(s.counts.Total)), s.counts.Removing), s.removed())
}

// wrong says what will not come right by itself. Empty: nothing is wrong.
func (s *summary) wrong() string {
	halted := s.halted()
	switch {
	case len(s.Problems) == 1:
		return s.Problems[0].words()
	case len(s.Problems) > 1:
		return words.Join(s.Problems[0].words(), fmt.Sprintf("There %s %s.", isOrAre(len(s.Problems)-1), words.Count(len(s.Problems)-1, "more problem")))
	case halted != nil:
		return words.Join(fmt.Sprintf("The rollout by Placement %s/%s is halted.", halted.Namespace, halted.Name),
			words.Sentence(bounded.Text(halted.Rollout.Message, words.MaxPart)), s.example(s.firstDegraded))
	case s.firstDegraded != nil:
		return words.Join(fmt.Sprintf("It will not come right by itself on %s.", s.of(int(s.counts.Degraded))), s.example(s.firstDegraded))
	}
	return ""
}

// example is what one of the members says.
func (s *summary) example(m *Member) string {
	if m == nil || m.Message == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", m.Name, words.Sentence(m.Message))
}

// standing says how far the members are.
func (s *summary) standing() string {
	updated, wanted := int(s.counts.Updated), s.wanted()
	switch {
	case wanted == 0:
		return "No member is to have it."
	case updated == wanted && int(s.counts.Available) == wanted && wanted == 1:
		return "1 member has it as it is to be, and it is well."
	case updated == wanted && int(s.counts.Available) == wanted:
		return fmt.Sprintf("All %d members have it as it is to be, and it is well.", wanted)
	}
	parts := []string{fmt.Sprintf("%d well", s.counts.Available)}
	if s.counts.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d of which nobody knows", s.counts.Unknown))
	}
	if s.Awaited > 0 {
		parts = append(parts, fmt.Sprintf("%d still to get it", s.Awaited))
	}
	have := "have"
	if wanted == 1 {
		have = "has"
	}
	return fmt.Sprintf("%d of %s %s it as it is to be: %s.", updated, members(wanted), have, strings.Join(parts, ", "))
}

// waiting says what a rollout waits for, where that is not members.
func (s *summary) waiting() string {
	for i := range s.Placements {
		p := &s.Placements[i]
		switch p.Rollout.Phase {
		case placementv1alpha1.PhaseWaitingForApproval, placementv1alpha1.PhaseWaitingForTime, placementv1alpha1.PhasePaused, placementv1alpha1.PhaseStopped:
			return fmt.Sprintf("Placement %s/%s: %s", p.Namespace, p.Name, words.Sentence(cmp.Or(p.Rollout.Message, string(p.Rollout.Phase))))
		}
	}
	return ""
}

// goodbye tells of members that are not to have it any more.
func (s *summary) goodbye() string {
	if s.counts.Removing == 0 {
		return ""
	}
	return words.Join(fmt.Sprintf("It is being removed from %s.", members(int(s.counts.Removing))), s.removed())
}

// removed is what one of the members says that are being left, if that was not said.
func (s *summary) removed() string {
	if s.firstRemoved == s.firstDegraded {
		return ""
	}
	return s.example(s.firstRemoved)
}

func (s *summary) of(n int) string { return fmt.Sprintf("%d of %s", n, members(int(s.counts.Total))) }

func members(n int) string { return words.Count(n, "member") }
