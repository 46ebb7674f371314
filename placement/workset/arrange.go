package workset

import (
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// wanted contains the desired Works of one cluster. Without objects, the cluster has no Works.
type wanted struct {
	bundle.Wanted
	assigned   assignment
	owner      owner
	placements string // the annotation of the first Work; empty: the existing one stays
}

// hasNoteOf reports whether a Work has the desired annotations of the first Work.
func (w *wanted) hasNoteOf(r *record) bool {
	return r.assigned == w.assigned && w.owner.claims(r) &&
		(w.placements == "" || r.Annotations[v1alpha1.PlacementsAnnotation] == w.placements)
}

// step is one write or deletion of a Work.
type step struct {
	bundle.Step
	has *record // the existing Work; nil: it is created
}

// arrange returns the steps that turn the existing Works of a cluster into the desired ones. The names of all Works
// begin with base.
func arrange(base string, has []*record, want *wanted) ([]bundle.Step, error) {
	works := make([]bundle.Existing, len(has))
	for i, r := range has {
		works[i] = bundle.Existing{
			Work: r.content, Options: r.options, Written: r.written,
			Marked: r.marked, Noted: want.hasNoteOf(r), Processed: r.observed, Deleting: r.DeletionTimestamp != nil,
		}
	}
	return bundle.Arrange(base, works, want.Wanted)
}
