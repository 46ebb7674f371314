package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// AddonObserved is the observed state of an add-on on all members.
type AddonObserved struct {
	// Generation is the generation of the Addon to which the status applies.
	Generation int64
	// Before is the current status. A condition that does not change keeps its transition time.
	Before v1alpha1.AddonStatus
	// Now is the transition time of changed conditions. It must not be zero.
	Now time.Time
	// Deleting is true if the Addon has a deletionTimestamp.
	Deleting bool
	// Members are the members that have a MemberAddon of this Addon, in any order, without duplicates.
	Members []Member
	// Awaited is the number of selected members that have no MemberAddon yet.
	Awaited int
	// Placements are the Placements of the install strategy in the order of the spec. Status copies the first 16 of
	// them.
	Placements []v1alpha1.PlacementStatus
	// Problems are the problems of the add-on as a whole, in any order.
	Problems []Problem
	// Forced are forced removals of members that no longer have a MemberAddon, in any order. Removals that Members or
	// Before already contain may be included.
	Forced []v1alpha1.ForcedRemoval
}

// Member is the part of a MemberAddon that Status needs. It is small enough to be cached for a whole fleet.
type Member struct {
	Name string
	// Updated is true if the member has the desired revision.
	Updated bool
	// Available and Degraded are the statuses of these conditions.
	Available, Degraded metav1.ConditionStatus
	// Removing is true if the MemberAddon has a deletionTimestamp.
	Removing bool
	// Message is the message of the status, at most 512 bytes.
	Message string
	// Forced is the record of a forced removal. Nil: the removal was not forced.
	Forced *v1alpha1.ForcedRemoval
}

// MemberOf extracts from a MemberAddon what Status needs. The result shares only strings with the MemberAddon.
func MemberOf(name string, a *v1alpha1.MemberAddon) Member {
	status := func(kind string) metav1.ConditionStatus {
		condition := meta.FindStatusCondition(a.Status.Conditions, kind)
		if condition == nil || a.Status.ObservedGeneration != a.Generation {
			return metav1.ConditionUnknown // the conditions describe an earlier generation
		}
		switch condition.Status { // constants, so that the decoded object can be garbage-collected
		case metav1.ConditionTrue:
			return metav1.ConditionTrue
		case metav1.ConditionFalse:
			return metav1.ConditionFalse
		}
		return metav1.ConditionUnknown
	}
	m := Member{
		Name: name, Available: status(v1alpha1.ConditionAvailable), Degraded: status(v1alpha1.ConditionDegraded),
		Removing: a.DeletionTimestamp != nil, Message: bounded.Text(a.Status.Message, messages.MaxPart),
	}
	m.Updated = !m.Removing && a.Status.DesiredRevision != "" && a.Status.AppliedRevision == a.Status.DesiredRevision &&
		status(v1alpha1.ConditionManifestsApplied) == metav1.ConditionTrue
	m.Forced = forced(name, a)
	return m
}

// Status returns the status of an Addon on all members. It does not modify its argument; the result may share memory
// with it.
//
// The result does not change while only Now changes and Before is the previous result.
func Status(o AddonObserved) v1alpha1.AddonStatus {
	s := &summary{AddonObserved: o}
	s.Problems = slices.SortedFunc(slices.Values(o.Problems), compareProblems)
	s.Placements = o.Placements[:min(len(o.Placements), maxPlacements)]
	if len(s.Placements) == 0 {
		s.Placements = nil // equal to the value that the API returns
	}
	s.count()
	conditions := set(o.Before.Conditions, []metav1.Condition{s.installed(), s.degraded(), s.available()},
		metav1.Condition{ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(o.Now)})
	addonReady.Set(&conditions, o.Generation, o.Now, nil)
	return v1alpha1.AddonStatus{
		ObservedGeneration: o.Generation,
		Message:            bounded.Text(s.message(), messages.MaxMessage),
		Counts:             s.counts,
		Placements:         s.Placements,
		ForcedRemovals:     s.forced(),
		Conditions:         conditions,
	}
}

const maxPlacements = 16 // the limit of the API

// summary sums up the members of an add-on.
type summary struct {
	AddonObserved
	counts        v1alpha1.AddonCounts
	firstDegraded *Member // the first degraded member by name
	firstRemoved  *Member // the first member by name that is being removed
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

// wanted returns the number of members that must have the add-on.
func (s *summary) wanted() int { return int(s.counts.Total-s.counts.Removing) + s.Awaited }

func (s *summary) installed() metav1.Condition {
	const kind = v1alpha1.ConditionInstalled
	switch {
	case s.Deleting:
		return not(kind, v1alpha1.ReasonRemoving, s.message())
	case len(s.Problems) > 0:
		return not(kind, s.Problems[0].reason(), s.Problems[0].text())
	case int(s.counts.Updated) < s.wanted():
		return not(kind, v1alpha1.ReasonUpdating, s.progress())
	}
	return is(kind, v1alpha1.ReasonUpdated, s.progress())
}

// available returns the condition Available. It covers the members that have the add-on. The condition Installed
// reports whether all selected members have it.
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
	case s.blocked():
		return is(kind, s.Problems[0].reason(), s.failureText())
	case s.halted() != nil:
		return is(kind, placementv1alpha1.ReasonRolloutHalted, s.failureText())
	case s.firstDegraded != nil:
		return is(kind, placementv1alpha1.ReasonClustersFailed, s.failureText())
	}
	return not(kind, v1alpha1.ReasonAsDesired, "")
}

func (s *summary) blocked() bool { return len(s.Problems) > 0 && !s.Problems[0].Retried }

// halted returns the first placement whose rollout is halted or rolled back, or nil.
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

// message returns the errors, followed by the progress. It contains no text that changes with time alone.
func (s *summary) message() string {
	switch {
	case !s.Deleting:
		return messages.Join(s.failureText(), s.progress(), s.waiting(), s.removing())
	case s.counts.Total == 0:
		return messages.Join(s.failureText(), "Add-on is being deleted.")
	}
	return messages.Join(s.failureText(),
		fmt.Sprintf("Add-on is being deleted: %s remaining, %d being removed.", members(int(s.counts.Total)),
			s.counts.Removing), s.removed())
}

// failureText describes the failures that require a change by a user. It is empty if there are none.
func (s *summary) failureText() string {
	halted := s.halted()
	switch {
	case len(s.Problems) == 1:
		return s.Problems[0].text()
	case len(s.Problems) > 1:
		return messages.Join(s.Problems[0].text(),
			fmt.Sprintf("There %s %s.", isOrAre(len(s.Problems)-1), messages.Count(len(s.Problems)-1, "more problem")))
	case halted != nil:
		return messages.Join(fmt.Sprintf("The rollout for Placement %s/%s is halted.", halted.Namespace, halted.Name),
			messages.Message(bounded.Text(halted.Rollout.Message, messages.MaxPart)), s.example(s.firstDegraded))
	case s.firstDegraded != nil:
		return messages.Join(fmt.Sprintf("Add-on is degraded on %s.", s.of(int(s.counts.Degraded))),
			s.example(s.firstDegraded))
	}
	return ""
}

// example returns the message of one member.
func (s *summary) example(m *Member) string {
	if m == nil || m.Message == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", m.Name, messages.Message(m.Message))
}

// progress describes the progress of the members.
func (s *summary) progress() string {
	updated, wanted := int(s.counts.Updated), s.wanted()
	switch {
	case wanted == 0:
		return "No member is selected."
	case updated == wanted && int(s.counts.Available) == wanted && wanted == 1:
		return "Add-on is up to date and available on 1 member."
	case updated == wanted && int(s.counts.Available) == wanted:
		return fmt.Sprintf("Add-on is up to date and available on all %d members.", wanted)
	}
	parts := []string{fmt.Sprintf("%d available", s.counts.Available)}
	if s.counts.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", s.counts.Unknown))
	}
	if s.Awaited > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", s.Awaited))
	}
	return fmt.Sprintf("Add-on is up to date on %d of %s: %s.", updated, members(wanted), strings.Join(parts, ", "))
}

// waiting describes what a rollout waits for, other than members.
func (s *summary) waiting() string {
	for i := range s.Placements {
		p := &s.Placements[i]
		switch p.Rollout.Phase {
		case placementv1alpha1.PhaseWaitingForApproval, placementv1alpha1.PhaseWaitingForTime,
			placementv1alpha1.PhasePaused, placementv1alpha1.PhaseStopped:
			return fmt.Sprintf("Placement %s/%s: %s", p.Namespace, p.Name,
				messages.Message(cmp.Or(p.Rollout.Message, string(p.Rollout.Phase))))
		}
	}
	return ""
}

// removing describes the members from which the add-on is being removed.
func (s *summary) removing() string {
	if s.counts.Removing == 0 {
		return ""
	}
	return messages.Join(fmt.Sprintf("Add-on is being removed from %s.", members(int(s.counts.Removing))), s.removed())
}

// removed returns the message of a member that is being removed, unless it is also the degraded example.
func (s *summary) removed() string {
	if s.firstRemoved == s.firstDegraded {
		return ""
	}
	return s.example(s.firstRemoved)
}

func (s *summary) of(n int) string { return fmt.Sprintf("%d of %s", n, members(int(s.counts.Total))) }

func members(n int) string { return messages.Count(n, "member") }
