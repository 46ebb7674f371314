package turn

import (
	"time"

	"github.com/muster-sdk/muster/placement/rollout"
)

// Standing is the state of a member that its rollout needs.
type Standing struct {
	// Desired is the desired revision of the member. Of is the revision without the overrides of the member: the revision
	// of the rollout.
	Desired, Of string
	// Told is the last revision that the member was assigned, and Since its time.
	Told  string
	Since time.Time
	// Failed is true if the hub cannot render any revision for the member.
	Failed bool
	// Aside is true if an override of the member prevents all revisions, which is independent of the rollout.
	Aside bool
	// Health of the member, and the time of its last change.
	Health      rollout.Health
	HealthSince time.Time
}

// TakesPart reports whether the rollout includes the member. It does not before the member can get a revision, or while
// an override of the member must be fixed.
func (s Standing) TakesPart(joined bool) bool { return !s.Aside && (s.Told != "" || joined) }

// Target returns the member as its rollout to a revision sees it, without name, group and labels. A member with a
// permit counts as being updated, whether or not it has the revision: it occupies one slot in both cases.
func (s Standing) Target(revision string, t Turn) rollout.Target {
	switch {
	case s.Failed && (s.Of == revision || s.Of == ""):
		return rollout.Target{Revision: revision, Since: s.HealthSince, Health: s.Health, HealthSince: s.HealthSince}
	case s.Told != "" && s.Told == s.Desired && s.Of == revision:
		return rollout.Target{Revision: revision, Since: s.Since, Health: s.Health, HealthSince: s.HealthSince}
	case t.May(revision):
		return rollout.Target{Revision: revision, Since: t.Since, Health: rollout.Progressing, HealthSince: t.Since}
	case s.Told != "":
		// in any case a different revision
		return rollout.Target{Revision: "~" + s.Told, Since: s.Since, Health: s.Health, HealthSince: s.HealthSince}
	}
	return rollout.Target{}
}
