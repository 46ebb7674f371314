package scheduler

import "time"

// CycleState is the state that the plugins of one cycle share. A plugin also uses it to pass values from one extension
// point to the next. A cycle calls plugins sequentially, so the state needs no lock.
type CycleState struct {
	snapshot *Snapshot
	bound    Set
	placed   Set
	values   map[any]any
	until    time.Time
}

// NewCycleState returns the initial state of a cycle, for callers that call plugins directly, such as tests.
func NewCycleState(snapshot *Snapshot, request *Request) *CycleState {
	state := &CycleState{snapshot: snapshot, bound: named(snapshot, request.Bound, nil)}
	state.placed = placedOn(snapshot, request, state.bound)
	return state
}

// named returns the set of the named clusters that the snapshot contains. It reuses the memory of words. If there are
// no names, it returns the zero Set.
func named(snapshot *Snapshot, names []string, words []uint64) Set {
	if len(names) == 0 {
		return Set{}
	}
	set := Set{cleared(words, len(snapshot.present.words))}
	for _, name := range names {
		if slot, there := snapshot.Slot(name); there {
			set.Add(slot)
		}
	}
	return set
}

// placedOn returns the set of the clusters that a request is placed on or bound to.
func placedOn(snapshot *Snapshot, request *Request, bound Set) Set {
	if len(request.Placed) == 0 {
		return bound
	}
	placed := named(snapshot, request.Placed, nil)
	placed.Insert(bound)
	return placed
}

// Snapshot returns the snapshot for which the cycle decides.
func (s *CycleState) Snapshot() *Snapshot { return s.snapshot }

// Bound returns the set of the clusters that the request has chosen before and that still exist. It must not be
// changed.
func (s *CycleState) Bound() Set { return s.bound }

// Placed returns the set of the clusters that the placement runs on now and those that the request is bound to, if the
// snapshot contains them. It must not be changed.
func (s *CycleState) Placed() Set { return s.placed }

// Write stores a value for the rest of the cycle. A key of an unexported type belongs to the package of the plugin.
func (s *CycleState) Write(key, value any) {
	if s.values == nil {
		s.values = map[any]any{}
	}
	s.values[key] = value
}

// Read returns the value that was stored with this key. It returns nil if there is none.
func (s *CycleState) Read(key any) any { return s.values[key] }

// Until limits how long the decision is valid although nothing changes; see [Result].Until.
func (s *CycleState) Until(at time.Time) {
	if s.until.IsZero() || at.Before(s.until) {
		s.until = at
	}
}
