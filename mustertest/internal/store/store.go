// Package store keeps API objects in memory with the same semantics that etcd has for kube-apiserver: one revision
// counter for all objects, a history of changes that a watch can read from any revision, and compaction.
//
// A Store is not persistent. All its methods may be called concurrently. Objects in it are immutable: a caller must
// never change an Item or its map.
package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Key names one object. Namespace is empty for cluster-scoped objects.
type Key struct {
	Resource  schema.GroupResource
	Namespace string
	Name      string
}

// An Item is one version of one object.
type Item struct {
	Key      Key
	Object   map[string]any // with metadata.resourceVersion; never changed
	Revision uint64         // of the write that created this version
	Created  uint64         // the Revision of the first version

	json atomic.Pointer[[]byte]
	list atomic.Pointer[[]byte]
	memo atomic.Pointer[any]
}

// Unstructured returns the object without copying it. The caller must not change it.
func (i *Item) Unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: i.Object}
}

// JSON returns the encoded object. The object is encoded once for all readers.
func (i *Item) JSON() ([]byte, error) {
	if cached := i.json.Load(); cached != nil {
		return *cached, nil
	}
	encoded, err := json.Marshal(i.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", i.Key.Resource, i.Key.Namespace, i.Key.Name, err)
	}
	i.json.Store(&encoded)
	return encoded, nil
}

// ListJSON returns the encoded object without apiVersion and kind, which is the encoding in lists of built-in kinds.
func (i *Item) ListJSON() ([]byte, error) {
	if cached := i.list.Load(); cached != nil {
		return *cached, nil
	}
	object := make(map[string]any, len(i.Object))
	for key, value := range i.Object {
		if key != "apiVersion" && key != "kind" {
			object[key] = value
		}
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", i.Key.Resource, i.Key.Namespace, i.Key.Name, err)
	}
	i.list.Store(&encoded)
	return encoded, nil
}

// Memo returns the value that compute derives from the object, and caches it. All callers must pass the same compute
// function for one Item.
func (i *Item) Memo(compute func(map[string]any) any) any {
	if cached := i.memo.Load(); cached != nil {
		return *cached
	}
	value := compute(i.Object)
	i.memo.Store(&value)
	return value
}

// An EventType is the type of a change of an object.
type EventType int

// The types of events.
const (
	Added EventType = iota
	Modified
	Deleted
)

// An Event is one change of an object. Item is the state after the change; for Deleted it is the last state, with the
// revision of the deletion. Before is the state before the change, and nil for Added.
type Event struct {
	Type   EventType
	Item   *Item
	Before *Item
}

type table struct {
	items   map[[2]string]*Item // by namespace and name
	log     []Event             // in the order of revisions
	dropped uint64              // number of events that were removed from the head of log
	sorted  []*Item             // all items in order; nil after a write
	changed chan struct{}       // closed by the next change; nil if no watch waits
}

// A Store stores objects. Create it with New.
type Store struct {
	mu        sync.Mutex
	revision  uint64
	compacted uint64 // revisions below it are no longer readable
	tables    map[schema.GroupResource]*table
	history   int
	changed   chan struct{}
	feed      []Event
	observe   func(Event)
}

// Observe registers f, which is called for each change, in the order of revisions. The Store is locked during the call,
// so f must not use the Store. Observe must be called before the Store is used. A Restore does not call f.
func (s *Store) Observe(f func(Event)) { s.observe = f }

// New returns an empty Store. History is the minimum number of changes per resource that the Store keeps. Older changes
// are compacted. Zero keeps all changes.
func New(history int) *Store {
	return &Store{revision: 1, tables: map[schema.GroupResource]*table{}, history: history}
}

// A Tx reads and writes the Store while all other writes are blocked. It must not be used after its function has
// returned.
type Tx struct{ s *Store }

// Do runs f as one transaction. Writes of f are not rolled back if f returns an error, so f must check all conditions
// before it writes.
func (s *Store) Do(f func(*Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(&Tx{s: s})
}

// Revision returns the revision of the latest write.
func (t *Tx) Revision() uint64 { return t.s.revision }

// Get returns an object, or nil if it does not exist.
func (t *Tx) Get(key Key) *Item {
	tab := t.s.tables[key.Resource]
	if tab == nil {
		return nil
	}
	return tab.items[[2]string{key.Namespace, key.Name}]
}

// List returns the objects of a resource in the order of namespace and name. An empty namespace selects all namespaces.
// The caller must not change the slice.
func (t *Tx) List(resource schema.GroupResource, namespace string) []*Item {
	return t.s.list(resource, namespace)
}

// Put stores an object and returns the new Item. The caller must not use object after the call.
func (t *Tx) Put(key Key, object map[string]any) *Item {
	s := t.s
	tab := s.table(key.Resource)
	at := [2]string{key.Namespace, key.Name}
	before := tab.items[at]
	s.revision++
	item := &Item{Key: key, Object: withRevision(object, s.revision), Revision: s.revision, Created: s.revision}
	event := Event{Type: Added, Item: item, Before: before}
	if before != nil {
		item.Created = before.Created
		event.Type = Modified
	}
	tab.items[at] = item
	s.record(tab, event)
	return item
}

// Delete removes an object and returns its last state, with the revision of the deletion. It returns nil if the object
// does not exist.
func (t *Tx) Delete(key Key) *Item {
	s := t.s
	before := t.Get(key)
	if before == nil {
		return nil
	}
	tab := s.table(key.Resource)
	delete(tab.items, [2]string{key.Namespace, key.Name})
	s.revision++
	last := &Item{Key: key, Object: withRevision(before.Object, s.revision), Revision: s.revision, Created: before.Created}
	s.record(tab, Event{Type: Deleted, Item: last, Before: before})
	return last
}

func (s *Store) record(tab *table, event Event) {
	tab.sorted = nil
	tab.log = append(tab.log, event)
	s.feed = append(s.feed, event)
	if s.observe != nil {
		s.observe(event)
	}
	if s.history > 0 && len(tab.log) > 2*s.history {
		drop := len(tab.log) - s.history
		s.compacted = max(s.compacted, tab.log[drop-1].Item.Revision)
		tab.drop(drop)
	}
	if tab.changed != nil {
		close(tab.changed)
		tab.changed = nil
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (tab *table) drop(n int) {
	tab.log = slices.Clone(tab.log[n:])
	tab.dropped += uint64(n)
}

func (s *Store) table(resource schema.GroupResource) *table {
	tab := s.tables[resource]
	if tab == nil {
		tab = &table{items: map[[2]string]*Item{}}
		s.tables[resource] = tab
	}
	return tab
}

func (s *Store) list(resource schema.GroupResource, namespace string) []*Item {
	tab := s.tables[resource]
	if tab == nil {
		return nil
	}
	if tab.sorted == nil {
		tab.sorted = make([]*Item, 0, len(tab.items))
		for _, item := range tab.items {
			tab.sorted = append(tab.sorted, item)
		}
		sortItems(tab.sorted)
	}
	if namespace == "" {
		return slices.Clip(tab.sorted)
	}
	from, _ := slices.BinarySearchFunc(tab.sorted, namespace, func(item *Item, wanted string) int {
		return cmp.Compare(item.Key.Namespace, wanted)
	})
	to := from
	for to < len(tab.sorted) && tab.sorted[to].Key.Namespace == namespace {
		to++
	}
	return slices.Clip(tab.sorted[from:to])
}

func sortItems(items []*Item) {
	slices.SortFunc(items, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
}

// withRevision returns a copy of object in which only metadata.resourceVersion differs.
func withRevision(object map[string]any, revision uint64) map[string]any {
	out := make(map[string]any, len(object))
	maps.Copy(out, object)
	meta, _ := object["metadata"].(map[string]any)
	metadata := make(map[string]any, len(meta)+1)
	maps.Copy(metadata, meta)
	metadata["resourceVersion"] = strconv.FormatUint(revision, 10)
	out["metadata"] = metadata
	return out
}

// At returns a copy of the item with another revision.
func (i *Item) At(revision uint64) *Item {
	return &Item{Key: i.Key, Object: withRevision(i.Object, revision), Revision: revision, Created: i.Created}
}
