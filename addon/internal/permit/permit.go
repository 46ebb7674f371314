package permit

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// Permit is the rollout permit of a member. The zero value permits every revision.
type Permit struct {
	// Placement is the Placement of the member. Empty: none.
	Placement string
	// Revision is the permitted revision, unless Hold is set, and Since the time of the permit. Empty: none yet.
	Revision string
	Since    time.Time
	// Hold is the reason why the rollout blocks the member. Empty: not blocked.
	Hold rollout.HoldReason
	// BlockedBy is the reason why the member gets no new revision, regardless of the rollout. Empty: no such reason.
	BlockedBy rollout.HoldReason
}

// Reasons why a member gets no new revision. They are part of condition messages.
const (
	Leaving    rollout.HoldReason = "the member is leaving"
	NotJoined  rollout.HoldReason = "the member has not joined yet"
	NotAllowed rollout.HoldReason = "the Placement is not permitted to select the member"
	Uncertain  rollout.HoldReason = "the selection of the member is not known yet"
	Removed    rollout.HoldReason = "the add-on is about to be removed"
)

// BlockedBy returns the reason why a decision excludes a new revision. Empty: the decision permits one.
func BlockedBy(d install.Decision) rollout.HoldReason {
	switch {
	case d.Reason == install.Leaving:
		return Leaving
	case d.Reason == install.Uncertain:
		return Uncertain
	case d.Reason == install.NotAllowed:
		return NotAllowed
	case d.Action == install.Delete, d.Reason == install.WaitsForTurn, d.Reason == install.Removing:
		return Removed
	}
	return ""
}

// Allows reports whether the member may get a revision of the rollout, with its overrides applied.
func (t Permit) Allows(revision string) bool {
	return t.BlockedBy == "" && (t.Placement == "" || t.Revision != "" && t.Revision == revision && t.Hold == "")
}

// After returns the permit with the revision, time and hold of the previous permit, if both have the same Placement.
func (t Permit) After(before Permit) Permit {
	if t.Placement == before.Placement {
		t.Revision, t.Since, t.Hold = before.Revision, before.Since, before.Hold
	}
	return t
}

// Rolled returns the permit after a step of the rollout to a revision. A hold blocks the member; an empty hold permits
// the revision.
func (t Permit) Rolled(revision string, hold rollout.HoldReason, now time.Time) Permit {
	switch {
	case hold != "":
		t.Hold = hold
	case !t.Allows(revision):
		t.Revision, t.Since, t.Hold = revision, now, ""
	}
	return t
}

// Observed is the observed state of a member.
type Observed struct {
	Permit Permit
	// Desired is the desired revision of the member. Of is the revision without the overrides of the member: the revision
	// of the rollout.
	Desired, Of string
	// Assigned is the last revision that the member was assigned. Empty: none.
	Assigned string
	// Before is the current status of the MemberAddon.
	Before *v1alpha1.MemberAddonStatus
	// Joined and Leaving are the lifecycle state of the member.
	Joined, Leaving bool
}

// Decision is the decision whether a member gets the desired revision.
type Decision struct {
	// Update is true if the member gets the desired revision.
	Update bool
	// Keep is true if the member keeps its assigned revision, and that revision counts as the desired one.
	Keep bool
	// Hold is the reason why the member does not get the revision. Empty if Keep is true, since nothing is pending.
	Hold rollout.HoldReason
}

// Next returns the decision for a member.
func Next(o Observed) Decision {
	keeps := o.blockedBy()
	switch {
	case !o.Leaving && (o.Assigned == o.Desired || keeps == "" && (o.Permit.Allows(o.Of) || o.failedBefore())):
		return Decision{Update: true}
	case keeps == "":
		return Decision{Hold: o.Permit.Hold}
	case o.Assigned == "":
		return Decision{Hold: keeps}
	default:
		return Decision{Keep: true}
	}
}

func (o Observed) blockedBy() rollout.HoldReason {
	switch {
	case o.Leaving:
		return Leaving
	case o.Assigned == "" && !o.Joined:
		return NotJoined
	}
	return o.Permit.BlockedBy
}

// failedBefore reports whether the member had a permit before the controllers restarted, and the revision could not be
// assigned. Only the status records this. The attempt is repeated; otherwise another member would get the permit in its
// place.
func (o Observed) failedBefore() bool {
	applied := meta.FindStatusCondition(o.Before.Conditions, v1alpha1.ConditionManifestsApplied)
	return o.Permit.Revision == "" && o.Before.DesiredRevision == o.Desired && applied != nil &&
		applied.Status == metav1.ConditionFalse &&
		(applied.Reason == v1alpha1.ReasonManifestsFailed || applied.Reason == v1alpha1.ReasonNoAgent)
}
