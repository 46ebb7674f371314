package workset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// worksModel is a model of the Works of one WorkSet for one cluster: a hub, the member's agent, and a watch that can
// lag. Works exist only as records.
type worksModel struct {
	set      types.NamespacedName
	works    map[string]*record
	versions int
	watch    []func(*workCache) // events that it has not delivered yet
	cached   *workCache
	writes   []string
	applied  map[string][]bundle.Object // the objects on the member, by Work
}

const east = "member-east"

func newWorksModel() *worksModel {
	return &worksModel{set: types.NamespacedName{Namespace: "shop", Name: "web"}, works: map[string]*record{},
		applied: map[string][]bundle.Object{}, cached: newWorkCache(func(types.NamespacedName) {})}
}

// padding provides text of any length.
var padding = make([]byte, workv1alpha1.MaxManifestBytes)

// sized returns an object with a text of the given length.
func sized(name string, size int) bundle.Object {
	o := bundle.Object{ResourceIdentifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: name},
		JSON: padding[:size]}
	copy(o.Hash[:], fmt.Sprintf("%s/%d", name, size))
	return o
}

func (w *worksModel) put(r *record) *record {
	w.versions++
	r.ResourceVersion = strconv.Itoa(w.versions)
	if w.works[r.Name] = r; r.DeletionTimestamp != nil && len(r.Finalizers) == 0 {
		delete(w.works, r.Name)
		w.watch = append(w.watch, func(l *workCache) { l.observeDeletion(r) })
	} else {
		w.watch = append(w.watch, func(l *workCache) { l.observe(r) })
	}
	return r
}

// change changes a Work in the way of the API server, and adds the event to the watch.
func (w *worksModel) change(name string, change func(*record)) *record {
	next := *w.works[name]
	change(&next)
	if w.works[name].content.Hash != next.content.Hash || w.works[name].options != next.options {
		next.Generation++
		next.observed = false
	}
	return w.put(&next)
}

var (
	errLost  = errors.New("no response to the write")
	errStale = errors.New("conflict")
)

// write carries out a step in the way of the API server.
func (w *worksModel) write(s *step, want *wanted) (*record, error) {
	write := func(r *record) {
		if r.content, r.options = s.Work, want.Options; s.First {
			r.assigned = want.assigned
		}
		r.content.Objects = slices.Clone(r.content.Objects)
		r.set, r.marked = w.set, true
	}
	if s.Act == bundle.Create {
		if w.works[s.Work.Name] != nil {
			return nil, errStale
		}
		w.versions++
		r := &record{ObjectMeta: metav1.ObjectMeta{
			Namespace: east, Name: s.Work.Name, UID: types.UID(strconv.Itoa(w.versions)), Generation: 1,
			Finalizers: []string{workv1alpha1.Finalizer},
		}}
		write(r)
		return w.put(r), nil
	}
	existing := w.works[s.Work.Name]
	switch {
	case existing == nil || existing.UID != s.has.UID || s.Act != bundle.Delete &&
		existing.ResourceVersion != s.has.ResourceVersion:
		return nil, errStale
	case s.Act == bundle.Delete:
		return w.change(s.Work.Name, func(r *record) { r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), nil
	case s.Act == bundle.Note:
		return w.change(s.Work.Name, func(r *record) { r.assigned, r.marked = want.assigned, true }), nil
	}
	return w.change(s.Work.Name, write), nil
}

// execute carries out a step, and records it in the cache. lost states whether the request or the response is lost, if
// any.
func (w *worksModel) execute(s *step, want *wanted, lost string) error {
	if lost != "" && s.has != nil {
		defer w.cached.markUncertain(s.has)
	}
	if lost == "request" {
		return errLost
	}
	name := types.NamespacedName{Namespace: east, Name: s.Work.Name}
	end := w.cached.beginWrite(name)
	r, err := w.write(s, want)
	w.writes = append(w.writes, fmt.Sprint(s.Act, " ", name.Name))
	switch {
	case err != nil:
		end(nil)
		w.refresh(s)
		return err
	case lost == "answer":
		end(nil)
		return errLost
	case s.Act == bundle.Delete:
		end(nil)
		w.cached.deleted(s.has)
		return nil
	}
	got := *r
	if s.Act != bundle.Note {
		got.written = &bundle.Fingerprint{Objects: s.Work.Hash, Options: want.Options}
	}
	end(&got)
	return nil
}

func (w *worksModel) refresh(s *step) {
	switch {
	case s.has != nil && w.works[s.has.Name] == nil:
		w.cached.observeDeletion(s.has)
	case s.has != nil:
		w.cached.observe(w.works[s.has.Name])
	case w.works[s.Work.Name] != nil:
		w.cached.observe(w.works[s.Work.Name])
	}
}

// deliverEvents delivers up to n events of the watch.
func (w *worksModel) deliverEvents(n int) {
	for range min(n, len(w.watch)) {
		next := w.watch[0]
		w.watch = w.watch[1:]
		next(w.cached)
	}
}

// applyWork applies one Work in the way of the agent.
func (w *worksModel) applyWork(name string) {
	r := w.works[name]
	switch {
	case r == nil:
	case r.DeletionTimestamp != nil:
		delete(w.applied, name)
		w.change(name, func(r *record) { r.Finalizers = nil })
	case !r.observed:
		w.applied[name] = r.content.Objects
		w.change(name, func(r *record) { r.observed = true })
	}
}

// has reports whether the member has an object. An object that a Work loses stays while another Work has it.
func (w *worksModel) has(key bundle.Key) bool {
	for _, objects := range w.applied {
		if slices.ContainsFunc(objects, func(o bundle.Object) bool { return o.Key() == key }) {
			return true
		}
	}
	return false
}

func (w *worksModel) names() []string {
	var names []string
	for name := range w.works {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// worksByObject returns the Works that contain each object, without Works that are being deleted.
func (w *worksModel) worksByObject() map[bundle.Key][]string {
	homes := map[bundle.Key][]string{}
	for _, name := range w.names() {
		if w.works[name].DeletionTimestamp != nil {
			continue
		}
		for i := range w.works[name].content.Objects {
			key := w.works[name].content.Objects[i].Key()
			homes[key] = append(homes[key], name)
		}
	}
	return homes
}

// deliver runs a delivery: it carries out the possible steps until one fails.
func (w *worksModel) deliver(want *wanted, lost func() string) error {
	for _, r := range w.cached.at(w.set, east).records {
		if w.cached.isUncertain(r) {
			w.refresh(&step{has: r})
			w.cached.markCertain(r.key())
		}
	}
	existing := w.cached.at(w.set, east)
	steps, err := arrange(baseName(w.set), existing.records, want)
	if err != nil {
		return err
	}
	for i, failed := 0, false; i < len(steps) && !failed; i++ { // the next delivery repeats a failed step
		if steps[i].Waits == "" {
			failed = w.execute(&step{steps[i], existing.named(steps[i].Work.Name)}, want, lost()) != nil
		}
	}
	return nil
}

func noLoss() string { return "" }

// settle runs deliveries until no step remains, and returns the number of rounds; 0: the steps do not end.
func (w *worksModel) settle(want *wanted) (rounds int) {
	for rounds = 1; rounds < 40; rounds++ {
		w.deliverEvents(len(w.watch))
		steps, err := arrange(baseName(w.set), w.cached.at(w.set, east).records, want)
		if err == nil && len(steps) == 0 && len(w.watch) == 0 && w.quiet() {
			return rounds
		}
		if err := w.deliver(want, noLoss); err != nil {
			return 0
		}
		for _, name := range w.names() {
			w.applyWork(name)
		}
	}
	return 0
}

func (w *worksModel) quiet() bool {
	for _, r := range w.works {
		if r.DeletionTimestamp != nil || !r.observed {
			return false
		}
	}
	return true
}
