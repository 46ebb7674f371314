package deletion

import (
	"time"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Requested is the answer of [OfWork] for a deletion that a user asked for. All other answers but the empty one are
// reasons why the end of a Work is no request; they are reasons of the condition Orphaned of an AppliedWork.
const Requested = "Requested"

// Work is what was observed of a Work on the hub.
type Work struct {
	// Found is false if the API server answered that there is no such Work.
	Found bool
	// Deleted is the deletionTimestamp; zero: none.
	Deleted time.Time
	// Generated is true if a controller generates the Work.
	Generated bool
	// Requested is true if the controller that deleted the Work noted its request.
	Requested bool
}

// WorkOf reads what is relevant of a Work; nil: there is none.
func WorkOf(work *v1alpha1.Work) Work {
	if work == nil {
		return Work{}
	}
	w := Work{
		Found: true, Generated: work.Annotations[v1alpha1.GeneratedByAnnotation] != "",
		Requested: work.Annotations[v1alpha1.DeletionRequestedByAnnotation] != "",
	}
	if work.DeletionTimestamp != nil {
		w.Deleted = work.DeletionTimestamp.Time
	}
	return w
}

// Hub is what was observed of the place where the Work is.
type Hub struct {
	// Definition is the state of the definition of Works.
	Definition definition.State
	// NamespaceDeleted is the deletionTimestamp of the namespace; zero: none, or the namespace does not exist.
	NamespaceDeleted time.Time
}

// OfWork returns [Requested] if a user asked for the deletion of the Work, a reason if the Work is gone, or is being
// deleted, without such a request, and nothing for a Work that is not being deleted.
//
// Timestamps have a resolution of one second. A Work that was deleted in the second in which its namespace was
// deleted counts as deleted with the namespace.
func OfWork(w Work, h Hub) string {
	switch {
	case !w.Found && h.Definition != definition.Served:
		return v1alpha1.ReasonDefinitionRemoved
	case !w.Found:
		return v1alpha1.ReasonWorkNotFound
	case w.Deleted.IsZero():
		return ""
	case w.Requested:
		return Requested
	case w.Generated:
		return v1alpha1.ReasonNotRequestedByGenerator
	case h.Definition != definition.Served:
		return v1alpha1.ReasonDefinitionRemoved
	case !h.NamespaceDeleted.IsZero() && !w.Deleted.Before(h.NamespaceDeleted):
		return v1alpha1.ReasonNamespaceTerminating
	default:
		return Requested
	}
}
