package workset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/bundle"
)

const kib = 1 << 10

var (
	one = assignment{"web-1", time.Unix(1, 0).UTC()}
	two = assignment{"web-2", time.Unix(2, 0).UTC()}
)

func desired(current assignment, objects ...bundle.Object) *wanted {
	return &wanted{Wanted: bundle.Wanted{Objects: objects}, assigned: current}
}

// newConvergedModel returns a model in which the desired state is reached.
func newConvergedModel(t require.TestingT, want *wanted) *worksModel {
	w := newWorksModel()
	require.NotZero(t, w.settle(want), "the steps do not end")
	w.writes = nil
	return w
}

// stepTexts returns the steps as texts.
func stepTexts(steps []bundle.Step) []string {
	var all []string
	for i := range steps {
		text := fmt.Sprint(steps[i].Act, " ", steps[i].Work.Name)
		if steps[i].Waits != "" {
			text += ", waiting"
		}
		all = append(all, text)
	}
	return all
}

// TestArrange checks that arrange passes the content of the records to package bundle, which tests its own decisions.
func TestArrange(t *testing.T) {
	a, b, c := sized("a", 200*kib), sized("b", 200*kib), sized("c", 400*kib)
	moved := desired(one, sized("a", 600*kib), b, c)
	for _, test := range []struct {
		reason string
		change func(*worksModel)
		want   *wanted
		steps  []string
	}{
		{"the desired state is reached", nil, desired(one, a, b, c), nil},
		{"changed content", nil, desired(one, a, sized("b", 201*kib), c), []string{"update shop.web-0"}},
		{"changed options", nil, &wanted{Wanted: bundle.Wanted{Objects: []bundle.Object{a, b, c}, Options: bundle.Hash{1}},
			assigned: one}, []string{"update shop.web-0", "update shop.web-1"}},
		{"another revision with the same content", nil, desired(two, a, b, c), []string{"note shop.web-0"}},
		{"no desired objects", nil, &wanted{}, []string{"delete shop.web-0", "delete shop.web-1"}},
		{"a Work that is being deleted is not deleted again", func(w *worksModel) {
			w.cached.deleted(w.works["shop.web-1"])
		}, &wanted{}, []string{"delete shop.web-0"}},
		{"edited content is restored", func(w *worksModel) {
			w.change("shop.web-0", func(r *record) { r.content.Hash = bundle.Hash{1} })
		}, desired(one, a, b, c), []string{"update shop.web-0"}},
		{"edited options are restored", func(w *worksModel) {
			w.change("shop.web-1", func(r *record) { r.options = bundle.Hash{1} })
		}, desired(one, a, b, c), []string{"update shop.web-1"}},
		{"removed labels are restored", func(w *worksModel) { w.change("shop.web-1", func(r *record) { r.marked = false }) },
			desired(one, a, b, c), []string{"update shop.web-1"}},
		{"an edited assignment is restored", func(w *worksModel) {
			w.change("shop.web-0", func(r *record) { r.assigned = two })
		}, desired(one, a, b, c), []string{"note shop.web-0"}},
		{"a copy of a Work with another name is deleted", func(w *worksModel) {
			orphan := *w.works["shop.web-0"]
			orphan.Name, orphan.content.Name, orphan.UID = "copy", "copy", "copy"
			w.put(&orphan)
		}, desired(one, a, b, c), []string{"delete copy"}},
		{"content that the API server changed is not written again", func(w *worksModel) {
			r := *w.works["shop.web-0"]
			r.written, r.content.Hash = &bundle.Fingerprint{Objects: r.content.Hash, Options: r.options}, bundle.Hash{1}
			w.put(&r)
		}, desired(one, a, b, c), nil},
		{"an object that moves stays until its new Work is applied", func(w *worksModel) {
			require.NoError(t, w.deliver(moved, noLoss))
		}, moved, []string{"update shop.web-0, waiting"}},
		{"an object that moved is removed when its new Work is applied", func(w *worksModel) {
			require.NoError(t, w.deliver(moved, noLoss))
			w.applyWork("shop.web-2")
		}, moved, []string{"update shop.web-0"}},
	} {
		w := newConvergedModel(t, desired(one, a, b, c))
		if test.change != nil {
			test.change(w)
			w.deliverEvents(len(w.watch))
		}
		steps, err := arrange(baseName(w.set), w.cached.at(w.set, east).records, test.want)
		require.NoError(t, err, test.reason)
		if diff := cmp.Diff(test.steps, stepTexts(steps)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// TestArrange_MovedObject checks that annotations that are written before the content are not compared as the content.
func TestArrange_MovedObject(t *testing.T) {
	b := sized("b", 200*kib)
	w := newConvergedModel(t, desired(one, sized("a", 200*kib), b))
	want := desired(two, sized("a", 600*kib), b)
	require.NotZero(t, w.settle(want), "the steps do not end")
	require.Equal(t, map[bundle.Key][]string{b.Key(): {"shop.web-0"}, want.Objects[0].Key(): {"shop.web-1"}},
		w.worksByObject())
	require.Equal(t, []string{"note shop.web-0", "create shop.web-1", "update shop.web-0"}, w.writes)
}

// TestArrangeProperties checks that, with random changes of Works, requests and watch events, the member has exactly
// the desired objects in the end, and that an object that is desired all the time is never removed meanwhile.
func TestArrangeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, want := newWorksModel(), desired(one)
		externalEdits := rapid.Bool().Draw(t, "external edits")
		lost := func() string { return rapid.SampledFrom([]string{"", "", "", "request", "answer"}).Draw(t, "lost") }
		const always = 4 // number of objects that are desired all the time
		names := []string{"a", "b", "c", "d", "e", "f"}
		t.Repeat(map[string]func(*rapid.T){
			"another revision": func(t *rapid.T) {
				next := desired(assignment{fmt.Sprint("web-", rapid.IntRange(1, 9).Draw(t, "revision")),
					want.assigned.since.Add(time.Second)})
				for i, name := range names {
					least := -200
					if i < always {
						least = 1
					}
					if size := rapid.IntRange(least, 700).Draw(t, name); size > 0 {
						next.Objects = append(next.Objects, sized(name, size*kib))
					}
				}
				want = next
			},
			"one object": func(t *rapid.T) {
				next := *want
				next.Objects = slices.Clone(want.Objects)
				if len(next.Objects) > 0 {
					i := rapid.IntRange(0, len(next.Objects)-1).Draw(t, "index")
					next.Objects[i] = sized(next.Objects[i].Name, rapid.IntRange(1, 700).Draw(t, "size")*kib)
				}
				want = &next
			},
			"deliver": func(t *rapid.T) {
				before := w.worksByObject()
				require.NoError(t, w.deliver(want, lost))
				after := w.worksByObject()
				for i := range want.Objects {
					if key := want.Objects[i].Key(); len(before[key]) > 0 {
						require.NotEmpty(t, after[key], "object %s was removed", key.Name)
					}
				}
			},
			"watch": func(t *rapid.T) { w.deliverEvents(rapid.IntRange(1, 5).Draw(t, "events")) },
			"member": func(t *rapid.T) {
				works := w.names()
				if len(works) == 0 {
					return
				}
				var before []bundle.Key
				for _, name := range names[:always] {
					if o := sized(name, 1); !externalEdits && w.has(o.Key()) {
						before = append(before, o.Key())
					}
				}
				w.applyWork(rapid.SampledFrom(works).Draw(t, "work"))
				for _, key := range before {
					require.True(t, w.has(key), "the member has lost object %s", key.Name)
				}
			},
			"external edit": func(t *rapid.T) {
				names := w.names()
				if len(names) == 0 || !externalEdits {
					return
				}
				name := rapid.SampledFrom(names).Draw(t, "work")
				switch rapid.IntRange(0, 3).Draw(t, "edit") {
				case 0:
					w.change(name, func(r *record) { r.content.Objects, r.content.Hash = nil, bundle.Hash{} })
				case 1:
					w.change(name, func(r *record) { r.marked = false })
				case 2:
					w.change(name, func(r *record) { r.assigned = assignment{"evil", time.Unix(99, 0)} })
				case 3:
					w.change(name, func(r *record) { r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
				}
				w.deliverEvents(len(w.watch)) // the cache knows all edits
			},
		})
		require.NotZero(t, w.settle(want), "the steps do not end")
		requireExact(t, w, want)
		restarted := *w
		restarted.cached = newWorkCache(func(types.NamespacedName) {})
		for _, r := range w.works {
			restarted.cached.observe(r)
		}
		steps, err := arrange(baseName(w.set), restarted.cached.at(w.set, east).records, want)
		require.NoError(t, err)
		require.Empty(t, stepTexts(steps), "a restart has no steps")
	})
}

// requireExact requires that each desired object is in exactly one Work, and that there are no others.
func requireExact(t require.TestingT, w *worksModel, want *wanted) {
	homes := w.worksByObject()
	require.Len(t, homes, len(want.Objects))
	for i := range want.Objects {
		o := &want.Objects[i]
		require.Len(t, homes[o.Key()], 1, o.Name)
		objects := w.works[homes[o.Key()][0]].content.Objects
		at := slices.IndexFunc(objects, func(existing bundle.Object) bool { return existing.Key() == o.Key() })
		require.Equal(t, o.Hash, objects[at].Hash, o.Name)
	}
	first := true
	for _, name := range w.names() { // fewer than ten names, so the order is that of their numbers
		r := w.works[name]
		require.True(t, r.marked, name)
		if first {
			require.Equal(t, want.assigned, r.assigned, name)
		}
		first = false
	}
}
