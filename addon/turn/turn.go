package turn

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/install"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// Turn is whether a member may be told what is new. The zero value is that of one that waits for nobody.
type Turn struct {
	// Placement that the member goes by. Empty: none.
	Placement string
	// Revision of the placement's rollout that the member may be told unless it is held, and Since when. Empty: none yet.
	Revision string
	Since    time.Time
	// Hold is why the rollout holds the member. Empty: it does not.
	Hold rollout.HoldReason
	// Keeps is why the member gets nothing new, whoever's turn it is. Empty: it may.
	Keeps rollout.HoldReason
}

// Why a member gets nothing new, in the words of its conditions.
const (
	Leaving   rollout.HoldReason = "the member is leaving"
	NotJoined rollout.HoldReason = "the member has not joined yet"
	Uncertain rollout.HoldReason = "nobody knows whether the member is to have it"
	Removed   rollout.HoldReason = "it is to be removed"
)

// KeepsBy is why a member gets nothing new for what was decided of it. Empty: it may.
func KeepsBy(d install.Decision) rollout.HoldReason {
	switch {
	case d.Reason == install.Leaving:
		return Leaving
	case d.Reason == install.Uncertain:
		return Uncertain
	case d.Action == install.Delete, d.Reason == install.WaitsForTurn, d.Reason == install.Removing:
		return Removed
	}
	return ""
}

// May reports whether the member may be told what a revision of the rollout comes to for it.
func (t Turn) May(revision string) bool {
	return t.Keeps == "" && (t.Placement == "" || t.Revision != "" && t.Revision == revision && t.Hold == "")
}

// After is the turn that follows on another one. What a member may be told stays as long as it goes by the same placement.
func (t Turn) After(before Turn) Turn {
	if t.Placement == before.Placement {
		t.Revision, t.Since, t.Hold = before.Revision, before.Since, before.Hold
	}
	return t
}

// Rolled is the turn after a step of the placement's rollout to a revision, which holds the member for a reason. Empty: it lets it.
func (t Turn) Rolled(revision string, hold rollout.HoldReason, now time.Time) Turn {
	switch {
	case hold != "":
		t.Hold = hold
	case !t.May(revision):
		t.Revision, t.Since, t.Hold = revision, now, ""
	}
	return t
}

// Observed is what is known of a member.
type Observed struct {
	Turn Turn
	// Desired is the revision that the member is to have, and Of the one that it would have without anything of its own, which the rollout is of.
	Desired, Of string
	// Told is the revision that it was told last. Empty: none.
	Told string
	// Before is the status of the MemberAddon as it is.
	Before *v1alpha1.MemberAddonStatus
	// Joined and Leaving say where the member is in its life.
	Joined, Leaving bool
}

// Verdict is whether a member is told what it is to have.
type Verdict struct {
	// Tell: it is.
	Tell bool
	// Stays: it is not, and what it was told counts as what it is to have.
	Stays bool
	// Hold is why it is not. Empty where Stays, since nothing is waited for.
	Hold rollout.HoldReason
}

// Next decides about a member.
func Next(o Observed) Verdict {
	keeps := o.keeps()
	switch {
	case !o.Leaving && (o.Told == o.Desired || keeps == "" && (o.Turn.May(o.Of) || o.tried())):
		return Verdict{Tell: true}
	case keeps == "":
		return Verdict{Hold: o.Turn.Hold}
	case o.Told == "":
		return Verdict{Hold: keeps}
	default:
		return Verdict{Stays: true}
	}
}

func (o Observed) keeps() rollout.HoldReason {
	switch {
	case o.Leaving:
		return Leaving
	case o.Told == "" && !o.Joined:
		return NotJoined
	}
	return o.Turn.Keeps
}

// tried reports whether it was the member's turn before the controllers began anew, and it could not be told: its status alone says so. It is tried again,
// for a failure that was forgotten would let others have a turn in its place.
func (o Observed) tried() bool {
	applied := meta.FindStatusCondition(o.Before.Conditions, v1alpha1.ConditionManifestsApplied)
	return o.Turn.Revision == "" && o.Before.DesiredRevision == o.Desired && applied != nil && applied.Status == metav1.ConditionFalse &&
		(applied.Reason == v1alpha1.ReasonManifestsFailed || applied.Reason == v1alpha1.ReasonNoAgent)
}
