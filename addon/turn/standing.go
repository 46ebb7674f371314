package turn

import (
	"time"

	"github.com/muster-sdk/muster/placement/rollout"
)

// Standing is how a member is doing, as the rollout that it goes by has to know it.
type Standing struct {
	// Desired is the revision that the member is to have, and Of the one that it would have without anything of its own, which the rollout is of.
	Desired, Of string
	// Told is what it was told last, and Since when.
	Told  string
	Since time.Time
	// Failed: it can have nothing, by whatever the hub does.
	Failed bool
	// Aside: it can have nothing for what it has of its own, which says nothing about what is rolled out.
	Aside bool
	// Health of it, and since when.
	Health      rollout.Health
	HealthSince time.Time
}

// TakesPart reports whether a rollout has to do with the member: not before it can get anything, and not while what is its own has to be mended.
func (s Standing) TakesPart(joined bool) bool { return !s.Aside && (s.Told != "" || joined) }

// Target is the member as its rollout to a revision sees it, without name, group and labels. Who may be told the revision is on the way to it, told or not:
// nobody else may take the turn meanwhile, and it takes no longer than one who was.
func (s Standing) Target(revision string, t Turn) rollout.Target {
	switch {
	case s.Failed && (s.Of == revision || s.Of == ""):
		return rollout.Target{Revision: revision, Since: s.HealthSince, Health: s.Health, HealthSince: s.HealthSince}
	case s.Told != "" && s.Told == s.Desired && s.Of == revision:
		return rollout.Target{Revision: revision, Since: s.Since, Health: s.Health, HealthSince: s.HealthSince}
	case t.May(revision):
		return rollout.Target{Revision: revision, Since: t.Since, Health: rollout.Progressing, HealthSince: t.Since}
	case s.Told != "":
		return rollout.Target{Revision: "~" + s.Told, Since: s.Since, Health: s.Health, HealthSince: s.HealthSince} // whatever that was, it is another
	}
	return rollout.Target{}
}
