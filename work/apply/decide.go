package apply

import (
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// move is the next action for one object.
type move string

const (
	create      move = "Create"      // create the object
	applyForced move = "ApplyForced" // apply, and take the fields from all other managers
	applyShared move = "ApplyShared" // apply, and take the fields from all other managers except those of other owners
	applyKept   move = "ApplyKept"   // apply, and take no field from another manager
	applyIfSame move = "ApplyIfSame" // apply if that changes nothing
	compare     move = "Compare"     // report the differences
	doNothing   move = "Leave"       // do nothing
)

// decision is the next action for an object. If the action is leave, it contains the result to report.
type decision struct {
	move    move
	drifted bool
	action  Action
	reason  string
	message string

	conflicts []FieldConflict
	lost      []FieldConflict // the fields that the decision heals
}

// heals reports whether the decision corrects changes by other clients while the manifest has not changed.
func (d decision) heals() bool {
	return d.drifted && (d.move == create || d.move == applyForced || d.move == applyShared)
}

func reportOnly(action Action, reason, message string) decision {
	return decision{move: doNothing, action: action, reason: reason, message: message}
}

// applyHistory is the information from earlier applies.
type applyHistory struct {
	hash     string // of the current manifest
	recorded recorded
	accepted []byte // our managed fields after the last write of this manifest; nil: unknown
}

// decide returns the next action for an observed object, or for one that does not exist (nil). All policies are in
// here. It is pure.
func decide(o Object, k applyHistory, s *observation) decision {
	switch {
	case o.observesOnly():
		return decideObserveOnly(o, s)
	case o.published():
		return reportOnly(Skipped, v1alpha1.ReasonExists,
			"Kubernetes publishes this ConfigMap in every namespace; the manifest is not applied.")
	case s == nil && k.recorded.ran != "" && k.recorded.ran == k.hash:
		return reportOnly(Skipped, v1alpha1.ReasonCompleted,
			"The Job has ttlSecondsAfterFinished, so it runs once, and no longer exists. "+
				"Change the manifest to run the Job again.")
	case s == nil && k.recorded.uid != "" && o.Drift == v1alpha1.DriftReport:
		d := reportOnly(Skipped, v1alpha1.ReasonDrifted,
			"The object was deleted on the member. Set drift to Correct to create it again.")
		d.drifted = true
		return d
	case s == nil:
		return decision{move: create, drifted: k.recorded.uid != ""}
	case s.deleting:
		return reportOnly(Skipped, v1alpha1.ReasonTerminating, terminatingMessage(s))
	case s.noApply:
		return reportOnly(Skipped, v1alpha1.ReasonDisabled,
			"Annotation "+v1alpha1.DisabledAnnotation+" on the object prevents applies. "+
				"Remove the annotation on the member to apply the manifest.")
	case s.marks.sameFieldOwner: // each owner would remove the mark of the other one, without an end
		return reportOnly(Conflict, v1alpha1.ReasonConflict,
			"Another Work applies the object with the same field owner. Set a different apply.fieldOwner in one of "+
				"the Works.")
	case s.marks.ours || s.uid == k.recorded.uid: // an object whose marks were removed still belongs to the owner
		return decideOurs(o, k, s)
	case o.Mode == v1alpha1.CreateOnly:
		return reportOnly(Skipped, v1alpha1.ReasonExists, "The object existed before and is not changed.")
	case s.marks.shared:
		return decision{move: applyShared}
	}
	switch o.Takeover {
	case v1alpha1.TakeoverAlways:
		return decision{move: forced(o)}
	case v1alpha1.TakeoverIfNoDiff:
		return decision{move: applyIfSame}
	default:
		return reportOnly(Conflict, v1alpha1.ReasonInTheWay,
			"The object exists and was not applied by this Work. Set takeover to IfNoDiff or Always to take over the "+
				"object, or mode to Observe to only report its state.")
	}
}

func decideObserveOnly(o Object, s *observation) decision {
	switch {
	case s == nil:
		return reportOnly(Observed, v1alpha1.ReasonNotFound, "The object does not exist.")
	case o.Mode == v1alpha1.ReportDiff:
		return decision{move: compare, action: Observed}
	default:
		return reportOnly(Observed, v1alpha1.ReasonObserved, "The object is only observed.")
	}
}

// decideOurs decides about an object that this owner has applied before.
func decideOurs(o Object, k applyHistory, s *observation) decision {
	if o.Mode == v1alpha1.CreateOnly {
		return reportOnly(Unchanged, v1alpha1.ReasonApplied, "The object was created, and is not changed.")
	}
	changed := s.marks.applied != "" && s.marks.applied != k.hash
	if o.Drift == v1alpha1.DriftIgnore && s.marks.applied == k.hash && s.labeled {
		return reportOnly(Unchanged, v1alpha1.ReasonApplied, "")
	}
	intact := s.marks.applied == k.hash && s.intact(o, k.accepted)
	if intact && !s.marks.former && s.fields != nil {
		if added := s.additions(o); len(added) > 0 {
			return decideAdditions(o, s, added)
		}
	}
	switch {
	case intact && !s.marks.former:
		return reportOnly(Unchanged, v1alpha1.ReasonApplied, "")
	case intact && s.marks.shared: // only the owner reference of an earlier release has to be removed
		return decision{move: applyShared}
	case intact:
		return decision{move: forced(o)}
	case o.Drift == v1alpha1.DriftReport && !changed:
		return decision{move: compare, drifted: true, action: Skipped}
	case o.Drift == v1alpha1.DriftReport:
		return decision{move: applyKept}
	case s.marks.shared:
		return decision{move: applyShared, drifted: !changed}
	default:
		return decision{move: forced(o), drifted: !changed}
	}
}

// decideAdditions decides about an object that has all fields of its manifest, and additions of other clients.
func decideAdditions(o Object, s *observation, added []FieldConflict) decision {
	d := decision{move: applyForced, drifted: true} // our manager owns all fields already, so nothing is forced
	switch {
	case o.Additions == v1alpha1.AdditionsReport:
		d = reportOnly(Skipped, v1alpha1.ReasonDrifted, fmt.Sprintf(
			"Other field managers have added fields on the member: %s. Set additions to Remove to remove the fields, or "+
				"to Keep to accept them.",
			describeConflicts(added)))
		d.drifted, d.conflicts = true, added
	case s.marks.shared:
		d.move = applyShared
	}
	return d
}

func forced(o Object) move {
	if o.KeepConflicts {
		return applyKept
	}
	return applyForced
}

func terminatingMessage(s *observation) string {
	if len(s.finalizers) == 0 {
		return "The object is being deleted on the member and will be recreated."
	}
	return fmt.Sprintf("The object is being deleted on the member, waits for %s, and will be recreated.",
		finalizers(s.finalizers))
}

func finalizers(names []string) string {
	if len(names) == 1 {
		return "finalizer " + names[0]
	}
	return "finalizers " + strings.Join(names, ", ")
}
