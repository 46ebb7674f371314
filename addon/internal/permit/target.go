package permit

import (
	"time"

	"github.com/muster-sdk/muster/placement/rollout"
)

// MemberState is the state of a member that its rollout needs.
type MemberState struct {
	// Desired is the desired revision of the member. Of is the revision without the overrides of the member: the revision
	// of the rollout.
	Desired, Of string
	// Assigned is the last revision that the member was assigned, and Since its time.
	Assigned string
	Since    time.Time
	// Failed is true if the hub cannot render any revision for the member.
	Failed bool
	// Aside is true if an override of the member prevents all revisions, which is independent of the rollout.
	Aside bool
	// Health is the health of the member, and HealthSince the time of its last change.
	Health      rollout.Health
	HealthSince time.Time
}

// Participates reports whether the rollout includes the member. It does not before the member can get a revision, or
// while an override of the member must be fixed.
func (s MemberState) Participates(joined bool) bool { return !s.Aside && (s.Assigned != "" || joined) }

// Target returns the member as its rollout to a revision sees it, without name, group and labels. A member with a
// permit counts as being updated, whether or not it has the revision: it occupies one slot in both cases.
func (s MemberState) Target(revision string, t Permit) rollout.Target {
	switch {
	case s.Failed && (s.Of == revision || s.Of == ""):
		return rollout.Target{Revision: revision, Since: s.HealthSince, Health: s.Health, HealthSince: s.HealthSince}
	case s.Assigned != "" && s.Assigned == s.Desired && s.Of == revision:
		return rollout.Target{Revision: revision, Since: s.Since, Health: s.Health, HealthSince: s.HealthSince}
	case t.Allows(revision):
		return rollout.Target{Revision: revision, Since: t.Since, Health: rollout.Progressing, HealthSince: t.Since}
	case s.Assigned != "":
		// The prefix makes the revision different from the revision of the rollout.
		return rollout.Target{Revision: "~" + s.Assigned, Since: s.Since, Health: s.Health, HealthSince: s.HealthSince}
	}
	return rollout.Target{}
}
