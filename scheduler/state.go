package scheduler

import "time"

// CycleState is what the plugins of one cycle share, and what one leaves for itself between its extension points. A cycle asks
// one plugin after the other, so it needs no lock.
type CycleState struct {
	snapshot *Snapshot
	bound    Set
	values   map[any]any
	until    time.Time
}

// NewCycleState returns the state that a cycle begins with, for those who call plugins themselves, as tests do.
func NewCycleState(snapshot *Snapshot, request *Request) *CycleState {
	return &CycleState{snapshot: snapshot, bound: bindings(snapshot, request, nil)}
}

// bindings is the set of the clusters that a request is bound to and that are there, in the memory of the words; the zero Set if
// it is bound to none.
func bindings(snapshot *Snapshot, request *Request, words []uint64) Set {
	if len(request.Bound) == 0 {
		return Set{}
	}
	bound := Set{cleared(words, len(snapshot.present.words))}
	for _, name := range request.Bound {
		if slot, there := snapshot.Slot(name); there {
			bound.Add(slot)
		}
	}
	return bound
}

// Snapshot is the fleet that the cycle decides on.
func (s *CycleState) Snapshot() *Snapshot { return s.snapshot }

// Bound is the set of the clusters that the request has chosen before and that are still there. It must not be changed.
func (s *CycleState) Bound() Set { return s.bound }

// Write keeps a value for the rest of the cycle. A key of a type that the plugin does not export is nobody else's.
func (s *CycleState) Write(key, value any) {
	if s.values == nil {
		s.values = map[any]any{}
	}
	s.values[key] = value
}

// Read returns what was written by this key, or nil.
func (s *CycleState) Read(key any) any { return s.values[key] }

// Until says that the decision holds no longer than to this time, although nothing changes: [Result].Until.
func (s *CycleState) Until(at time.Time) {
	if s.until.IsZero() || at.Before(s.until) {
		s.until = at
	}
}
