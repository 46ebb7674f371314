package store

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrCompacted means that a revision is no longer readable.
var ErrCompacted = errors.New("the required revision has been compacted")

// ErrFuture means that a revision has not been written yet.
var ErrFuture = errors.New("the required revision is larger than the current one")

// Revision returns the revision of the latest write.
func (s *Store) Revision() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Get returns an object, or nil if it does not exist.
func (s *Store) Get(key Key) *Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&Tx{s: s}).Get(key)
}

// List returns the objects of a resource and the revision at which they were read. An empty namespace selects all
// namespaces.
func (s *Store) List(resource schema.GroupResource, namespace string) ([]*Item, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(resource, namespace), s.revision
}

// ListAt returns the state of the objects of a resource at a revision. It returns ErrCompacted or ErrFuture if the
// revision is not readable.
func (s *Store) ListAt(resource schema.GroupResource, namespace string, revision uint64) ([]*Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case revision < s.compacted:
		return nil, ErrCompacted
	case revision > s.revision:
		return nil, ErrFuture
	}
	tab := s.tables[resource]
	if tab == nil {
		return nil, nil
	}
	state := make(map[[2]string]*Item, len(tab.items))
	maps.Copy(state, tab.items)
	for i := len(tab.log) - 1; i >= 0 && tab.log[i].Item.Revision > revision; i-- {
		event := tab.log[i]
		at := [2]string{event.Item.Key.Namespace, event.Item.Key.Name}
		if event.Before == nil {
			delete(state, at)
		} else {
			state[at] = event.Before
		}
	}
	out := make([]*Item, 0, len(state))
	for _, item := range state {
		if namespace == "" || item.Key.Namespace == namespace {
			out = append(out, item)
		}
	}
	sortItems(out)
	return out, nil
}

// Compact makes all revisions below the current one unreadable. A watch that has read all events continues.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.revision
	for _, tab := range s.tables {
		tab.drop(len(tab.log))
	}
}

// Changed returns a channel that the next write or Restore closes. If the current revision is already greater than
// since, the returned channel is closed.
func (s *Store) Changed(since uint64) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision > since {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Feed returns all changes since the last call of Feed. It supports one consumer.
func (s *Store) Feed() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	feed := s.feed
	s.feed = nil
	return feed
}

// A Cursor is a position in the history of one resource. It must not be used concurrently.
type Cursor struct {
	s        *Store
	resource schema.GroupResource
	next     uint64 // absolute index into the log
}

// From returns a Cursor whose first event is the first one after revision. It returns ErrCompacted or ErrFuture if the
// revision is not readable.
func (s *Store) From(resource schema.GroupResource, revision uint64) (*Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case revision < s.compacted:
		return nil, ErrCompacted
	case revision > s.revision:
		return nil, ErrFuture
	}
	tab := s.table(resource)
	at := len(tab.log)
	for at > 0 && tab.log[at-1].Item.Revision > revision {
		at--
	}
	return &Cursor{s: s, resource: resource, next: tab.dropped + uint64(at)}, nil
}

// Snapshot returns the objects of a resource, their revision, and a Cursor for the events after that revision.
func (s *Store) Snapshot(resource schema.GroupResource, namespace string) ([]*Item, uint64, *Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tab := s.table(resource)
	return s.list(resource, namespace), s.revision,
		&Cursor{s: s, resource: resource, next: tab.dropped + uint64(len(tab.log))}
}

// Next returns the events since the last call, and the revision up to which they are complete. If there are no events,
// Next returns a channel that is closed when new events exist. It returns ErrCompacted if the Store has dropped events
// that the Cursor has not read.
func (c *Cursor) Next() ([]Event, uint64, <-chan struct{}, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	tab := c.s.table(c.resource)
	if c.next < tab.dropped {
		return nil, c.s.revision, nil, ErrCompacted
	}
	events := tab.log[c.next-tab.dropped:]
	if len(events) > 0 {
		c.next += uint64(len(events))
		return slices.Clip(events), c.s.revision, nil, nil
	}
	if tab.changed == nil {
		tab.changed = make(chan struct{})
	}
	return nil, c.s.revision, tab.changed, nil
}

// A State is the state of a whole Store at one time.
type State struct {
	tables   map[schema.GroupResource]map[[2]string]*Item
	revision uint64
}

// Save returns the current state of all objects.
func (s *Store) Save() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{tables: map[schema.GroupResource]map[[2]string]*Item{}, revision: s.revision}
	for resource, tab := range s.tables {
		items := make(map[[2]string]*Item, len(tab.items))
		maps.Copy(items, tab.items)
		state.tables[resource] = items
	}
	return state
}

// Restore resets the Store to a saved state, as a restore of etcd does: the revision decreases and the history is
// empty. Open watches receive no events for the restore, so the caller must end them.
func (s *Store) Restore(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision, s.compacted = state.revision, state.revision
	for _, tab := range s.tables {
		tab.items, tab.sorted = map[[2]string]*Item{}, nil
		tab.drop(len(tab.log))
	}
	for resource, items := range state.tables {
		tab := s.table(resource)
		maps.Copy(tab.items, items)
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
