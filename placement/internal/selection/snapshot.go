package selection

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
)

// snapshot returns the current selection of an owner. Changed is called for later changes.
func (w *Watcher) snapshot(owner types.NamespacedName, parsed []parsedSelector) Selected {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds.Wanted(owner) {
		k.users.Read(owner)
	}
	if w.every != nil {
		w.every.users.Read(owner)
	}
	var selected Selected
	var found []*entry
	for i := range parsed {
		report := func(t problem) {
			if !t.none() {
				selected.Problems = append(selected.Problems, Problem{parsed[i].selector, t.reason, t.message})
			}
		}
		a := &parsed[i]
		report(a.problem)
		if !a.problem.none() {
			continue
		}
		t, watched := w.watches.Get(a.target)
		if !watched {
			report(stopping)
			continue
		}
		t.users.Read(owner)
		report(t.failure.problem)
		var faults []error
		for _, e := range t.list() {
			switch {
			case a.every && e.controlled: // its controller creates it on the cluster
			case e.err == nil:
				found = append(found, e)
			default:
				faults = append(faults, e.err)
			}
		}
		if len(faults) > 0 {
			report(refusedProblem(faults[0], len(faults)-1))
		}
		if t.failure.problem.none() && a.name != "" && len(t.entries) == 0 {
			report(notFoundProblem(t.target))
		}
	}
	selected.Objects = objects(found)
	return selected
}

// objects returns the objects of entries in order. If an object has several entries, the first one is used.
func objects(entries []*entry) []bundle.Object {
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	entries = slices.CompactFunc(entries, func(a, b *entry) bool { return a.Key() == b.Key() })
	out := make([]bundle.Object, len(entries))
	for i, e := range entries {
		out[i] = e.Object
	}
	return out
}
