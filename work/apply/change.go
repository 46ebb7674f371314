package apply

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Action is the result for an object.
type Action string

// The actions.
const (
	// Created: the object was created.
	Created Action = "Created"
	// Configured: the object was changed.
	Configured Action = "Configured"
	// Unchanged: the object is as desired.
	Unchanged Action = "Unchanged"
	// Observed: the object is only observed.
	Observed Action = "Observed"
	// Skipped: the object was not changed; Reason explains why.
	Skipped Action = "Skipped"
	// Conflict: the object, or some of its fields, belong to another owner or field manager.
	Conflict Action = "Conflict"
	// Failed: an attempt failed; Err is the error.
	Failed Action = "Failed"
	// Deleted: the object does not exist any more.
	Deleted Action = "Deleted"
	// Deleting: the deletion of the object has started.
	Deleting Action = "Deleting"
	// Released: the object stays, without the owner.
	Released Action = "Released"
)

// FieldConflict is a field that another field manager owns.
type FieldConflict struct {
	// Field is the path of the field, such as .spec.replicas.
	Field string
	// Manager is the field manager, such as "kubectl".
	Manager string
}

// A Change is the result for one object.
type Change struct {
	// Object identifies the object.
	Object v1alpha1.ResourceIdentifier
	// Wave is the wave of the object.
	Wave int32
	// Action is the result.
	Action Action
	// Drifted is true if another client has changed or deleted the object since it was applied.
	Drifted bool
	// Reason and Message explain the result. Their values are those of the conditions of a Work.
	Reason  string
	Message string
	// Conflicts are the fields that other field managers own.
	Conflicts []FieldConflict
	// Diffs are the differences between the manifest and the object, if they were compared.
	Diffs []v1alpha1.FieldDiff
	// RetryAfter is how long to wait before the object is applied again although nothing has changed. Zero: not
	// necessary.
	RetryAfter time.Duration
	// Err is the error, if Action is Failed.
	Err error
	// Live is the last known state of the object.
	Live LiveObject
}

// A LiveObject is the last known state of an object on the cluster.
type LiveObject struct {
	// UID is the UID of the object. Empty: the object does not exist, or the UID is unknown.
	UID types.UID
	// ResourceVersion is the last known resourceVersion of the object.
	ResourceVersion string
	// Object is the object in the last response of the API server. Nil: no request was necessary.
	Object *unstructured.Unstructured

	applied string // the hash of the manifest that the object was applied by
}

// passable are the reasons of skipped objects that later waves need not wait for.
var passable = []string{v1alpha1.ReasonExists, v1alpha1.ReasonContested, v1alpha1.ReasonCompleted}

// Done reports whether the manifest has been applied, so that later waves need not wait for it. An object that other
// clients change again and again is done; its reason is Contested.
func (c Change) Done() bool {
	switch c.Action {
	case Created, Configured, Unchanged, Observed, Deleted, Released:
		return c.Reason != v1alpha1.ReasonNotFound && c.Reason != v1alpha1.ReasonDiffers
	default:
		return c.Action == Skipped && slices.Contains(passable, c.Reason)
	}
}

// written reports whether the object was changed.
func (c Change) written() bool { return c.Action == Created || c.Action == Configured }

// A ChangeSet is the result for a [Set].
type ChangeSet struct {
	// Changes has one entry for each object, in the order of the set.
	Changes []Change
	// Inventory is the inventory to record now: [Set.Record] was called with its objects, but without their UIDs.
	Inventory []v1alpha1.AppliedResource
}

// Done reports whether all objects are done.
func (s ChangeSet) Done() bool {
	for _, change := range s.Changes {
		if !change.Done() {
			return false
		}
	}
	return true
}

// Err returns the joined errors of all objects that failed. Nil: none failed.
func (s ChangeSet) Err() error {
	var failed int
	var first error
	for _, change := range s.Changes {
		if change.Err == nil {
			continue
		}
		if failed++; first == nil {
			first = fmt.Errorf("%s: %w", change.Object, change.Err)
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more)", first, failed-1)
	}
	return first
}

func changesOf(wave []task, changes []Change) []Change {
	of := make([]Change, len(wave))
	for i, t := range wave {
		of[i] = changes[t.index]
	}
	return of
}

// change returns the result for an object that a decision does not change.
func (t *task) change(d decision) Change {
	c := Change{Object: t.id, Wave: t.wave, Action: d.action, Reason: d.reason, Message: d.message, Drifted: d.drifted,
		Conflicts: d.conflicts}
	if t.warning != "" {
		c.Message = strings.TrimSpace(c.Message + " " + t.warning)
	}
	if t.observed != nil {
		c.Live = LiveObject{UID: t.observed.uid, ResourceVersion: t.observed.version, applied: t.observed.marks.applied}
	}
	return c
}

// pending returns the result for an object whose wave has to wait. An invalid manifest is reported as such.
func (t *task) pending(reason string) Change {
	if t.err != nil {
		return t.failed(t.err)
	}
	return t.change(reportOnly(Skipped, v1alpha1.ReasonPending, reason))
}
