package workset

import "github.com/muster-sdk/muster/placement/bundle"

// wanted is what one cluster is to have of a WorkSet. Without objects it is to have nothing.
type wanted struct {
	bundle.Wanted
	told  told
	owner owner
}

// step is one request.
type step struct {
	bundle.Step
	has *record // as it is, unless it is created
}

// arrange returns the steps from the Works that a cluster has to those that it is to have. The base is what the names of all Works begin with.
func arrange(base string, has []*record, want *wanted) ([]bundle.Step, error) {
	works := make([]bundle.Held, len(has))
	for i, r := range has {
		works[i] = bundle.Held{
			Work: r.content, Options: r.options, Written: r.written,
			Marked: r.marked, Noted: r.told == want.told && want.owner.claims(r), Settled: r.settled, Deleting: r.DeletionTimestamp != nil,
		}
	}
	return bundle.Arrange(base, works, want.Wanted)
}
