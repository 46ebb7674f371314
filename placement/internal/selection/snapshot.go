package selection

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
)

// snapshot is what is known of what an owner asks for. From now on it is told of changes.
func (w *Watcher) snapshot(owner types.NamespacedName, asks []ask) Selected {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds.wanted(owner) {
		k.notify(owner)
	}
	if w.every != nil {
		w.every.notify(owner)
	}
	var selected Selected
	var found []*entry
	for i := range asks {
		report := func(t problem) {
			if !t.none() {
				selected.Problems = append(selected.Problems, Problem{asks[i].selector, t.reason, t.message})
			}
		}
		a := &asks[i]
		report(a.problem)
		if !a.problem.none() {
			continue
		}
		t := w.watches.all[a.target]
		if t == nil {
			report(stopping)
			continue
		}
		t.notify(owner)
		report(t.problem)
		var faults []error
		for _, e := range t.list() {
			switch {
			case a.every && e.controlled: // its controller makes it on the member
			case e.err == nil:
				found = append(found, e)
			default:
				faults = append(faults, e.err)
			}
		}
		if len(faults) > 0 {
			report(refused(faults[0], len(faults)-1))
		}
		if t.problem.none() && a.name != "" && len(t.entries) == 0 {
			report(notFound(t.target))
		}
	}
	selected.Objects = objects(found)
	return selected
}

// objects are those of the entries in order, each once: the first there is of it.
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
