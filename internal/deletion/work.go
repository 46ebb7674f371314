package deletion

import (
	"time"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Requested is the result of [OfWork] for a deletion that a user requested. All other results except the empty string
// are reasons why the deletion is not a request. They are reasons of the condition Orphaned of an AppliedWork.
const Requested = "Requested"

// Work is the observed state of a Work on the hub.
type Work struct {
	// Found is false if the API server responded that the Work does not exist.
	Found bool
	// Deleted is the deletionTimestamp. Zero: none.
	Deleted time.Time
	// Generated is true if a controller generates the Work.
	Generated bool
	// Requested is true if the controller that deleted the Work recorded the request in it.
	Requested bool
}

// WorkOf returns the observed state of a Work. A nil Work does not exist.
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

// Hub is the observed state of the definition and the namespace of the Work.
type Hub struct {
	// Definition is the state of the definition of Works.
	Definition definition.State
	// NamespaceDeleted is the deletionTimestamp of the namespace. Zero: none, or the namespace does not exist.
	NamespaceDeleted time.Time
}

// OfWork returns [Requested] if a user requested the deletion of the Work. If the Work is missing or is being deleted
// without such a request, OfWork returns a reason. For a Work that is not being deleted, it returns an empty string.
//
// Timestamps have a resolution of one second. A Work that was deleted in the same second as its namespace counts as
// deleted with the namespace.
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
