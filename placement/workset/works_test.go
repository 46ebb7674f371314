package workset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// numbered returns a record of the Work shop.web-0 with a resourceVersion.
func numbered(n int, change ...func(*record)) *record {
	r := &record{ObjectMeta: metav1.ObjectMeta{Namespace: east, Name: "shop.web-0", UID: "1",
		ResourceVersion: strconv.Itoa(n), Generation: 1}, set: web, marked: true}
	for _, f := range change {
		f(r)
	}
	return r
}

// TestDoubt checks that a write without a response leaves a doubt, which every later observation of the Work ends.
func TestDoubt(t *testing.T) {
	for _, test := range []struct {
		reason string
		do     func(*workCache)
		want   bool
	}{
		{"nobody has answered", func(*workCache) {}, true},
		{"the watch tells what was known before", func(w *workCache) { w.observe(numbered(1)) }, true},
		{"the watch tells something newer", func(w *workCache) { w.observe(numbered(2)) }, false},
		{"another write was answered", func(w *workCache) { w.beginWrite(numbered(1).key())(numbered(2)) }, false},
		{"somebody has looked", func(w *workCache) { w.markCertain(numbered(1).key()) }, false},
		{"it is gone", func(w *workCache) { w.observeDeletion(numbered(1)) }, false},
	} {
		w := newWorkCache(func(types.NamespacedName) {})
		w.observe(numbered(1))
		require.False(t, w.isUncertain(numbered(1)), test.reason)
		w.markUncertain(numbered(1))
		test.do(w)
		require.Equal(t, test.want, w.isUncertain(numbered(1)), test.reason)
	}
}

func TestAnswered(t *testing.T) {
	works := schema.GroupResource{Resource: "works"}
	for _, test := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"refused", apierrors.NewForbidden(works, "web", nil), true},
		{"overtaken", apierrors.NewConflict(works, "web", nil), true},
		{"put off", apierrors.NewTooManyRequests("later", 1), true},
		{"the API server has given up on it, and etcd may have not", apierrors.NewTimeoutError("too late", 1), false},
		{"something behind it has failed", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), false},
		{"the connection is lost", &url.Error{Op: "Patch", Err: io.ErrUnexpectedEOF}, false},
		{"nobody waited any longer", context.DeadlineExceeded, false},
	} {
		require.Equal(t, test.want, refused(fmt.Errorf("update: %w", test.err)), test.reason)
	}
}

func uid(uid types.UID) func(*record) { return func(r *record) { r.UID = uid } }

func TestWorkCache(t *testing.T) {
	settle := func(r *record) {
		r.observed, r.status = true, progress.Work{Generation: 1, Observed: 1, Applied: metav1.ConditionTrue}
	}
	for _, test := range []struct {
		reason   string
		do       func(*workCache)
		want     string // the version, + for its deletion has begun; empty: there is none
		news     int
		versions int // how often what is to be done may have become something else
	}{
		{"the watch tells", func(w *workCache) { w.observe(numbered(1)) }, "1", 1, 1},
		{"it tells twice", func(w *workCache) { w.observe(numbered(1)); w.observe(numbered(1)) }, "1", 1, 1},
		{"it is late", func(w *workCache) { w.observe(numbered(10)); w.observe(numbered(9)) }, "10", 1, 1},
		{"it is late after a write", func(w *workCache) {
			w.observe(numbered(1))
			end := w.beginWrite(numbered(1).key())
			end(numbered(3, func(r *record) { r.Generation = 2 }))
			w.observe(numbered(2))
		}, "3", 2, 2},
		{"it is faster than the answer", func(w *workCache) {
			end := w.beginWrite(numbered(1).key())
			w.observe(numbered(3))
			end(numbered(2))
		}, "3", 1, 1},
		{"a write is news, or who waits for it would not hear of it", func(w *workCache) {
			w.beginWrite(numbered(1).key())(numbered(1))
		}, "1", 1, 1},
		{"a write that failed is none", func(w *workCache) { w.beginWrite(numbered(1).key())(nil) }, "", 0, 0},
		{"what was asked for counts, also where it has changed nothing", func(w *workCache) {
			w.observe(numbered(1))
			w.beginWrite(numbered(1).key())(numbered(1, func(r *record) { r.written = &bundle.Fingerprint{} }))
		}, "1", 2, 2},
		{"a status is news, and nothing is to be done about it", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, func(r *record) { r.status.Message = "well" }))
		}, "2", 2, 1},
		{"but others may wait for it to be applied", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, settle))
		}, "2", 2, 2},
		{"no news is no news", func(w *workCache) { w.observe(numbered(1)); w.observe(numbered(2)) }, "2", 1, 1},
		{"it goes", func(w *workCache) { w.observe(numbered(1)); w.observeDeletion(numbered(2)) }, "", 2, 2},
		{"another one had its name before", func(w *workCache) {
			w.observe(numbered(5, uid("2")))
			w.observeDeletion(numbered(4))
		}, "5", 1, 1},
		{"it goes while it is written, and the answer is late", func(w *workCache) {
			w.observe(numbered(1))
			end := w.beginWrite(numbered(1).key())
			w.observeDeletion(numbered(2))
			end(numbered(2))
		}, "", 2, 2},
		{"another one is made at once", func(w *workCache) {
			w.observe(numbered(1))
			end := w.beginWrite(numbered(1).key())
			w.observeDeletion(numbered(2))
			w.observe(numbered(3, uid("2")))
			end(numbered(2))
		}, "3", 3, 3},
		{"its deletion has begun", func(w *workCache) { w.observe(numbered(1)); w.deleted(numbered(1)) }, "1+", 2, 2},
		{"which is said once", func(w *workCache) { w.observe(numbered(1)); w.deleted(numbered(1)); w.deleted(numbered(1)) },
			"1+", 2, 2},
		{"and stays so though the watch is late", func(w *workCache) {
			w.observe(numbered(1))
			w.deleted(numbered(1))
			w.observe(numbered(2))
		}, "2+", 2, 2},
		{"another of that name is another", func(w *workCache) {
			w.observe(numbered(1))
			w.deleted(numbered(1))
			w.observeDeletion(numbered(1))
			w.observe(numbered(3, uid("2")))
		}, "3", 4, 4},
		{"that of another one has", func(w *workCache) { w.observe(numbered(3, uid("2"))); w.deleted(numbered(1)) }, "3", 1,
			1},
		{"it is another WorkSet's now", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, func(r *record) { r.set.Name = "other" }))
		}, "", 3, 1},
		{"it is nobody's now", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, func(r *record) { r.set = types.NamespacedName{} }))
		}, "", 2, 1},
	} {
		news := 0
		w := newWorkCache(func(types.NamespacedName) { news++ })
		test.do(w)
		got := ""
		for _, r := range w.at(web, east).records {
			if got = r.ResourceVersion; r.DeletionTimestamp != nil {
				got += "+"
			}
		}
		require.Equal(t, test.want, got, test.reason)
		require.Equal(t, test.news, news, "%s: news", test.reason)
		if test.want != "" {
			require.EqualValues(t, test.versions, w.at(web, east).version, "%s: versions", test.reason)
		}
		w.observeDeletion(numbered(99))
		w.observeDeletion(numbered(99, uid("2")))
		require.Zero(t, w.works.Len(), "%s: it is forgotten in the end", test.reason)
		require.Empty(t, w.pending, "%s: it is forgotten in the end", test.reason)
		require.Empty(t, w.sets, "%s: it is forgotten in the end", test.reason)
	}
}

func TestSetOf(t *testing.T) {
	labels := map[string]string{v1alpha1.WorkSetLabel: "web", v1alpha1.WorkSetNamespaceLabel: "shop"}
	for _, test := range []struct {
		reason      string
		labels      map[string]string
		annotations map[string]string
		want        types.NamespacedName
		marked      bool
	}{
		{"its annotation says so", labels, map[string]string{v1alpha1.WorkSetAnnotation: "shop/web",
			workv1alpha1.GeneratedByAnnotation: "WorkSet shop/web"}, web, true},
		{"it is of an earlier release", labels, map[string]string{v1alpha1.WorkSetAnnotation: "shop/web"}, web, false},
		{"its deletion was asked for, and did not come to pass", labels, map[string]string{
			v1alpha1.WorkSetAnnotation: "shop/web", workv1alpha1.GeneratedByAnnotation: "WorkSet shop/web",
			workv1alpha1.DeletionRequestedByAnnotation: "uid",
		}, web, false},
		{"somebody has taken that off", labels, nil, web, false},
		{"somebody has taken the labels off", nil, map[string]string{v1alpha1.WorkSetAnnotation: "shop/web"}, web, false},
		{"it was given to another one", labels, map[string]string{v1alpha1.WorkSetAnnotation: "shop/other"},
			types.NamespacedName{Namespace: "shop", Name: "other"}, false},
		{"it says nothing that can be read", labels, map[string]string{v1alpha1.WorkSetAnnotation: "a/b/c"},
			types.NamespacedName{}, false},
		{"it says nothing", nil, nil, types.NamespacedName{}, false},
	} {
		r := recordOf(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Annotations: test.annotations}},
			nil)
		require.Equal(t, test.want, r.set, test.reason)
		require.Equal(t, test.marked, r.marked, test.reason)
	}
}

// TestRecord_KeepsMetadataOfMuster checks that the cache keeps no label and no annotation that only the agent uses.
func TestRecord_KeepsMetadataOfMuster(t *testing.T) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{v1alpha1.WorkSetLabel: "shop", "example.com/large": "x"},
		Annotations: map[string]string{v1alpha1.WorkSetAnnotation: "apps/shop", "example.com/large": "x"},
	}}
	r := recordOf(work, nil)
	require.Equal(t, map[string]string{v1alpha1.WorkSetLabel: "shop"}, r.Labels)
	require.Equal(t, map[string]string{v1alpha1.WorkSetAnnotation: "apps/shop"}, r.Annotations)
}
