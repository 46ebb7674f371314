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

	"github.com/muster-sdk/muster/placement/internal/version"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// works knows the Works that there are: those that the watch has told of, and those that were written since. A cache alone would be as
// it was before the last write for a while. Of two versions of a Work it keeps the newer, whichever way that came.
type works struct {
	changed func(set types.NamespacedName)

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	sets    map[types.NamespacedName]map[string]*place // by WorkSet and namespace
	changes uint64                                     // so that no place has one version twice
}

// entry is what is known under the name of a Work.
type entry struct {
	record  *record // nil: there is none
	writing int     // how many writes are on their way
	gone    types.UID
	ending  types.UID // the deletion of which has begun; the watch may tell of it as it was before
	doubted string    // the resourceVersion that was known when a write got no answer; empty: none
}

// place is what a WorkSet has in the namespace of a member.
type place struct {
	records map[string]*record
	version uint64 // another one with every change of anything but the status, and when a Work comes to be settled
}

func newWorks(changed func(set types.NamespacedName)) *works {
	return &works{changed: changed, entries: map[types.NamespacedName]*entry{}, sets: map[types.NamespacedName]map[string]*place{}}
}

// informer watches the Works of all WorkSets, and keeps records of them alone. All that there were at the start are known when known says
// so, which is later than when the informer has them.
func (w *works) informer(c client.WithWatch) (informer toolscache.SharedIndexInformer, known toolscache.InformerSynced, err error) {
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
		AddFunc:    func(object any) { w.saw(object.(*record)) },
		UpdateFunc: func(_, object any) { w.saw(object.(*record)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if gone, ok := object.(*record); ok {
				w.lost(gone)
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	return informer, registration.HasSynced, nil
}

// read makes a record of a Work, by what is known of it already.
func (w *works) read(work *workv1alpha1.Work) *record {
	w.mu.Lock()
	var before *record
	if e := w.entries[client.ObjectKeyFromObject(work)]; e != nil {
		before = e.record
	}
	w.mu.Unlock()
	return recordOf(work, before)
}

// saw takes in a Work that the API server has told of.
func (w *works) saw(r *record) {
	w.take(r.key(), func(e *entry) []types.NamespacedName {
		if e.gone == r.UID || e.record != nil && !version.Newer(r, e.record) {
			return nil
		}
		return w.put(r.key(), e, r)
	})
}

// confirmed takes in a Work that the API server has returned after the record of it was read. A version that is older than
// this record is the current one of a store that was restored.
func (w *works) confirmed(r, before *record) {
	if before == nil || before.UID != r.UID || !version.Newer(before, r) {
		w.saw(r)
		return
	}
	w.take(r.key(), func(e *entry) []types.NamespacedName {
		if e.record == nil || e.record.UID != before.UID || e.record.ResourceVersion != before.ResourceVersion {
			return nil
		}
		e.ending = "" // a deletion that the restore has undone
		return w.put(r.key(), e, r)
	})
}

// lost takes in that a Work is gone.
func (w *works) lost(r *record) {
	w.take(r.key(), func(e *entry) []types.NamespacedName {
		if e.writing > 0 {
			e.gone = r.UID // the answer to the write may tell of it once more
		}
		if e.record == nil || e.record.UID != r.UID {
			return nil
		}
		return w.put(r.key(), e, nil)
	})
}

// deleted takes in that the deletion of a Work has begun. It is not deleted once more before the watch tells of that.
func (w *works) deleted(r *record) {
	w.take(r.key(), func(e *entry) []types.NamespacedName {
		if e.record == nil || e.record.UID != r.UID || e.record.DeletionTimestamp != nil {
			return nil
		}
		e.ending = r.UID
		return w.put(r.key(), e, e.record)
	})
}

// doubt records that the result of a write is not known, since there was no response. The Work may have changed or not.
func (w *works) doubt(r *record) {
	w.take(r.key(), func(e *entry) []types.NamespacedName {
		if e.record != nil && e.record.UID == r.UID {
			e.doubted = e.record.ResourceVersion
		}
		return nil
	})
}

// sure takes in that a Work was looked at.
func (w *works) sure(name types.NamespacedName) {
	w.take(name, func(e *entry) []types.NamespacedName {
		e.doubted = ""
		return nil
	})
}

// doubts reports whether a Work may be another than it is known: until a newer version is.
func (w *works) doubts(r *record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[r.key()]
	return e != nil && e.record != nil && e.doubted == e.record.ResourceVersion
}

// begin takes in that a Work is about to be written; what it returns takes in what came of that, nil: nothing.
func (w *works) begin(name types.NamespacedName) (end func(*record)) {
	w.take(name, func(e *entry) []types.NamespacedName {
		e.writing++
		return nil
	})
	return func(r *record) {
		w.take(name, func(e *entry) (news []types.NamespacedName) {
			e.writing--
			if r != nil && e.gone != r.UID && (e.record == nil || !version.Newer(e.record, r)) {
				news = w.put(name, e, r)
			}
			if e.writing == 0 {
				e.gone = ""
			}
			return news
		})
	}
}

// take changes an entry under the lock, and notifies the WorkSets that the change affects.
func (w *works) take(name types.NamespacedName, change func(*entry) []types.NamespacedName) {
	w.mu.Lock()
	e := w.entries[name]
	if e == nil {
		e = &entry{}
		w.entries[name] = e
	}
	news := change(e)
	if e.record == nil && e.writing == 0 && e.gone == "" {
		delete(w.entries, name)
	}
	w.mu.Unlock()
	for _, set := range news {
		if set.Namespace != "" && set.Name != "" { // otherwise no WorkSet owns it
			w.changed(set)
		}
	}
}

// put replaces the record of an entry, and returns the WorkSets that it is news for. The lock is held.
func (w *works) put(name types.NamespacedName, e *entry, r *record) (news []types.NamespacedName) {
	before := e.record
	if r != nil && r.UID == e.ending && r.DeletionTimestamp == nil {
		r = r.dying()
	}
	e.record = r
	if before != nil && (r == nil || before.set != r.set) {
		w.drop(before.set, name)
		news = append(news, before.set)
	}
	if r == nil {
		return news
	}
	p := w.open(r.set, name.Namespace)
	p.records[name.Name] = r
	same := before != nil && r.sameButStatus(before)
	if !same || r.settled != before.settled {
		w.changes++
		p.version = w.changes
	}
	if !same || !reflect.DeepEqual(before.status, r.status) {
		news = append(news, r.set)
	}
	return news
}

func (w *works) open(set types.NamespacedName, namespace string) *place {
	places := w.sets[set]
	if places == nil {
		places = map[string]*place{}
		w.sets[set] = places
	}
	if places[namespace] == nil {
		places[namespace] = &place{records: map[string]*record{}}
	}
	return places[namespace]
}

func (w *works) drop(set, name types.NamespacedName) {
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

// of are the records of a WorkSet, by namespace.
func (w *works) of(set types.NamespacedName) map[string]held {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := make(map[string]held, len(w.sets[set]))
	for namespace, p := range w.sets[set] {
		found[namespace] = p.held()
	}
	return found
}

// at are those in one namespace.
func (w *works) at(set types.NamespacedName, namespace string) held {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.sets[set][namespace]; p != nil {
		return p.held()
	}
	return held{}
}

// held is what a WorkSet has in a namespace, by the names of the Works.
type held struct {
	records []*record
	version uint64
}

func (p *place) held() held {
	records := slices.AppendSeq(make([]*record, 0, len(p.records)), maps.Values(p.records))
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.Name, b.Name) })
	return held{records, p.version}
}

// named is the one of a name; nil: there is none.
func (h held) named(name string) *record {
	i, found := slices.BinarySearchFunc(h.records, name, func(r *record, name string) int { return cmp.Compare(r.Name, name) })
	if !found {
		return nil
	}
	return h.records[i]
}

// live are those whose deletion has not begun.
func (h held) live() []*record {
	return slices.DeleteFunc(slices.Clone(h.records), func(r *record) bool { return r.DeletionTimestamp != nil })
}

// told is what the cluster was told last.
func (h held) told() told {
	var last told
	for _, r := range h.live() {
		if r.told.revision != "" && !r.told.since.Before(last.since) {
			last = r.told
		}
	}
	return last
}
