package workset

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/assume"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// workCache contains the Works that the watch has reported or that this process has written.
type workCache struct {
	changed func(set types.NamespacedName)

	mu      sync.Mutex
	works   assume.Cache[*record]
	pending map[types.NamespacedName]pending
	sets    map[types.NamespacedName]map[string]*memberWorks // by WorkSet and namespace
	changes uint64                                           // the source of unique versions
}

// pending is the information about a Work that its watch has not reported yet.
type pending struct {
	deletion         types.UID // UID of the Work whose deletion has begun; the watch can report an older version
	uncertainVersion string    // the known resourceVersion when a write had no response; empty: no such write
}

// memberWorks are the Works of a WorkSet in the namespace of a member.
type memberWorks struct {
	records map[string]*record
	version uint64 // increases with every change except those of the status, and when the agent finishes a generation
}

func newWorkCache(changed func(set types.NamespacedName)) *workCache {
	return &workCache{changed: changed, pending: map[types.NamespacedName]pending{},
		sets: map[types.NamespacedName]map[string]*memberWorks{}}
}

// informer returns an informer that watches the Works of all WorkSets and keeps only records of them. known reports
// whether all existing Works are in the workCache, which is later than HasSynced of the informer.
func (w *workCache) informer(c client.WithWatch) (informer toolscache.SharedIndexInformer,
	known toolscache.InformerSynced, err error) {
	ours := client.HasLabels{v1alpha1.WorkSetLabel}
	informer = toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &workv1alpha1.WorkList{}
			err := c.List(ctx, list, ours, &client.ListOptions{Raw: &options})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, &workv1alpha1.WorkList{}, ours, &client.ListOptions{Raw: &options})
		},
	}, &workv1alpha1.Work{}, 0, toolscache.Indexers{})
	err = informer.SetTransform(func(object any) (any, error) {
		if work, ok := object.(*workv1alpha1.Work); ok {
			return w.read(work), nil
		}
		return object, nil
	})
	if err != nil {
		return nil, nil, err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.observe(object.(*record)) },
		UpdateFunc: func(_, object any) { w.observe(object.(*record)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if gone, ok := object.(*record); ok {
				w.observeDeletion(gone)
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	return informer, registration.HasSynced, nil
}

// read returns the record of a Work. It reuses parts of an earlier record.
func (w *workCache) read(work *workv1alpha1.Work) *record {
	w.mu.Lock()
	before := w.works.Get(client.ObjectKeyFromObject(work))
	w.mu.Unlock()
	return recordOf(work, before)
}

// observe records a Work that the watch reported.
func (w *workCache) observe(r *record) {
	w.change(r.key(), func() assume.Change[*record] { return w.works.Observe(w.current(r)) })
}

// confirmed records a Work that was read from the API server after the record before. If the Work is older than that
// record, the store was restored, and the older version is the current one.
func (w *workCache) confirmed(r, before *record) {
	if before == nil || before.UID != r.UID || !assume.Newer(before, r) {
		w.observe(r)
		return
	}
	w.change(r.key(), func() assume.Change[*record] {
		known := w.works.Get(r.key())
		if known == nil || known.UID != before.UID || known.ResourceVersion != before.ResourceVersion {
			return assume.Change[*record]{}
		}
		w.updatePending(r.key(), func(p *pending) { p.deletion = "" }) // the restore has undone the deletion
		return w.works.Replace(known, r)
	})
}

// observeDeletion records that the watch reported the removal of a Work.
func (w *workCache) observeDeletion(r *record) {
	w.change(r.key(), func() assume.Change[*record] { return w.works.ObserveDeletion(r) })
}

// deleted records that the deletion of a Work has begun, so that it is not deleted again before the watch reports it.
func (w *workCache) deleted(r *record) {
	w.change(r.key(), func() assume.Change[*record] {
		known := w.works.Get(r.key())
		if known == nil || known.UID != r.UID || known.DeletionTimestamp != nil {
			return assume.Change[*record]{}
		}
		w.updatePending(r.key(), func(p *pending) { p.deletion = r.UID })
		return w.works.Replace(known, known.deleting())
	})
}

// markUncertain records that a write of a Work had no response, so that its effect is unknown.
func (w *workCache) markUncertain(r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.works.Get(r.key()); known != nil && known.UID == r.UID {
		w.updatePending(r.key(), func(p *pending) { p.uncertainVersion = known.ResourceVersion })
	}
}

// markCertain records that a Work was read from the API server, so that its state is known again.
func (w *workCache) markCertain(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updatePending(name, func(p *pending) { p.uncertainVersion = "" })
}

// isUncertain reports whether a Work may differ from its record, because a write had no response. A newer version of
// the record resolves the doubt.
func (w *workCache) isUncertain(r *record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.works.Get(r.key())
	return known != nil && w.pending[r.key()].uncertainVersion == known.ResourceVersion
}

// beginWrite records that a Work is about to be written. The returned function records the resulting Work, or nil if
// the write had no result.
func (w *workCache) beginWrite(name types.NamespacedName) (end func(*record)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	response := w.works.BeginWrite(name)
	return func(r *record) {
		w.change(name, func() assume.Change[*record] {
			if r != nil {
				r = w.current(r)
			}
			return response(r)
		})
	}
}

// current returns the record of a Work. If this process has begun the deletion of the Work, the record has a deletion
// timestamp. The caller holds the lock.
func (w *workCache) current(r *record) *record {
	if r.DeletionTimestamp == nil && r.UID == w.pending[r.key()].deletion {
		return r.deleting()
	}
	return r
}

// updatePending changes the pending information about a Work. The caller holds the lock.
func (w *workCache) updatePending(name types.NamespacedName, change func(*pending)) {
	p := w.pending[name]
	if change(&p); p == (pending{}) {
		delete(w.pending, name)
	} else {
		w.pending[name] = p
	}
}

// change applies a change to the cache under the lock, and then notifies the affected WorkSets.
func (w *workCache) change(name types.NamespacedName, change func() assume.Change[*record]) {
	w.mu.Lock()
	c := change()
	news := w.index(name, c)
	if c.Before != nil && (c.After == nil || c.After.UID != c.Before.UID) {
		delete(w.pending, name)
	}
	w.mu.Unlock()
	for _, set := range news {
		if set.Name != "" { // otherwise no WorkSet owns it
			w.changed(set)
		}
	}
}

// index updates the Works by WorkSet, and returns the WorkSets that must be reconciled. The caller holds the lock.
func (w *workCache) index(name types.NamespacedName, c assume.Change[*record]) (news []types.NamespacedName) {
	before, r := c.Before, c.After
	if !c.Any() {
		return nil
	}
	if before != nil && (r == nil || before.set != r.set) {
		w.drop(before.set, name)
		news = append(news, before.set)
	}
	if r == nil {
		return news
	}
	p := w.memberWorksOf(r.set, name.Namespace)
	p.records[name.Name] = r
	same := before != nil && r.sameButStatus(before)
	if !same || r.observed != before.observed {
		w.changes++
		p.version = w.changes
	}
	if !same || !reflect.DeepEqual(before.status, r.status) {
		news = append(news, r.set)
	}
	return news
}

func (w *workCache) memberWorksOf(set types.NamespacedName, namespace string) *memberWorks {
	places := w.sets[set]
	if places == nil {
		places = map[string]*memberWorks{}
		w.sets[set] = places
	}
	if places[namespace] == nil {
		places[namespace] = &memberWorks{records: map[string]*record{}}
	}
	return places[namespace]
}

func (w *workCache) drop(set, name types.NamespacedName) {
	places := w.sets[set]
	p := places[name.Namespace]
	w.changes++
	p.version = w.changes
	if delete(p.records, name.Name); len(p.records) == 0 {
		delete(places, name.Namespace)
	}
	if len(places) == 0 {
		delete(w.sets, set)
	}
}

// of returns all Works of a WorkSet, by namespace.
func (w *workCache) of(set types.NamespacedName) map[string]existing {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := make(map[string]existing, len(w.sets[set]))
	for namespace, p := range w.sets[set] {
		found[namespace] = p.existing()
	}
	return found
}

// at returns the Works of a WorkSet in a namespace.
func (w *workCache) at(set types.NamespacedName, namespace string) existing {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.sets[set][namespace]; p != nil {
		return p.existing()
	}
	return existing{}
}

// existing contains the Works of a WorkSet in a namespace, sorted by name.
type existing struct {
	records []*record
	version uint64
}

func (p *memberWorks) existing() existing {
	records := slices.AppendSeq(make([]*record, 0, len(p.records)), maps.Values(p.records))
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.Name, b.Name) })
	return existing{records, p.version}
}

// named returns the Work with the given name, or nil if it does not exist.
func (h existing) named(name string) *record {
	i, found := slices.BinarySearchFunc(h.records, name, func(r *record, name string) int {
		return cmp.Compare(r.Name, name)
	})
	if !found {
		return nil
	}
	return h.records[i]
}

// live returns the Works whose deletion has not begun.
func (h existing) live() []*record {
	return slices.DeleteFunc(slices.Clone(h.records), func(r *record) bool { return r.DeletionTimestamp != nil })
}

// assigned returns the most recent assignment that the Works contain.
func (h existing) assigned() assignment {
	var last assignment
	for _, r := range h.live() {
		if r.assigned.revision != "" && !r.assigned.since.Before(last.since) {
			last = r.assigned
		}
	}
	return last
}
