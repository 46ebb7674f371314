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

// TestWorkCache_Uncertain checks that a write without a response makes a Work uncertain until the next observation.
func TestWorkCache_Uncertain(t *testing.T) {
	for _, test := range []struct {
		reason string
		do     func(*workCache)
		want   bool
	}{
		{"no later observation", func(*workCache) {}, true},
		{"the watch delivers the version before the write", func(w *workCache) { w.observe(numbered(1)) }, true},
		{"the watch delivers a newer version", func(w *workCache) { w.observe(numbered(2)) }, false},
		{"another write has a response", func(w *workCache) { w.beginWrite(numbered(1).key())(numbered(2)) }, false},
		{"the Work was read", func(w *workCache) { w.markCertain(numbered(1).key()) }, false},
		{"the Work is deleted", func(w *workCache) { w.observeDeletion(numbered(1)) }, false},
	} {
		w := newWorkCache(func(types.NamespacedName) {})
		w.observe(numbered(1))
		require.False(t, w.isUncertain(numbered(1)), test.reason)
		w.markUncertain(numbered(1))
		test.do(w)
		require.Equal(t, test.want, w.isUncertain(numbered(1)), test.reason)
	}
}

func TestRefused(t *testing.T) {
	works := schema.GroupResource{Resource: "works"}
	for _, test := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"forbidden", apierrors.NewForbidden(works, "web", nil), true},
		{"conflict", apierrors.NewConflict(works, "web", nil), true},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true},
		{"timeout of the API server, etcd may still write", apierrors.NewTimeoutError("too late", 1), false},
		{"internal error", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), false},
		{"lost connection", &url.Error{Op: "Patch", Err: io.ErrUnexpectedEOF}, false},
		{"deadline of the client", context.DeadlineExceeded, false},
	} {
		require.Equal(t, test.want, refused(fmt.Errorf("update: %w", test.err)), test.reason)
	}
}

func uid(uid types.UID) func(*record) { return func(r *record) { r.UID = uid } }

func TestWorkCache(t *testing.T) {
	applied := func(r *record) {
		r.observed, r.status = true, progress.Work{Generation: 1, Observed: 1, Applied: metav1.ConditionTrue}
	}
	for _, test := range []struct {
		reason   string
		do       func(*workCache)
		want     string // the version, with + if the deletion has begun; empty: no record
		notified int
		versions int // number of changes that can require other steps
	}{
		{"one event", func(w *workCache) { w.observe(numbered(1)) }, "1", 1, 1},
		{"the same event twice", func(w *workCache) { w.observe(numbered(1)); w.observe(numbered(1)) }, "1", 1, 1},
		{"a late event with an older version", func(w *workCache) { w.observe(numbered(10)); w.observe(numbered(9)) }, "10",
			1, 1},
		{"a late event after a write", func(w *workCache) {
			w.observe(numbered(1))
			end := w.beginWrite(numbered(1).key())
			end(numbered(3, func(r *record) { r.Generation = 2 }))
			w.observe(numbered(2))
		}, "3", 2, 2},
		{"an event before the response to the write", func(w *workCache) {
			end := w.beginWrite(numbered(1).key())
			w.observe(numbered(3))
			end(numbered(2))
		}, "3", 1, 1},
		{"a write notifies the WorkSet", func(w *workCache) {
			w.beginWrite(numbered(1).key())(numbered(1))
		}, "1", 1, 1},
		{"a failed write notifies nothing", func(w *workCache) { w.beginWrite(numbered(1).key())(nil) }, "", 0, 0},
		{"a write that changes nothing on the API server sets the written content", func(w *workCache) {
			w.observe(numbered(1))
			w.beginWrite(numbered(1).key())(numbered(1, func(r *record) { r.written = &bundle.Fingerprint{} }))
		}, "1", 2, 2},
		{"a changed message of the status requires no other steps", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, func(r *record) { r.status.Message = "well" }))
		}, "2", 2, 1},
		{"an applied Work can require other steps", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, applied))
		}, "2", 2, 2},
		{"a new version without a relevant change", func(w *workCache) { w.observe(numbered(1)); w.observe(numbered(2)) },
			"2", 1, 1},
		{"a deletion", func(w *workCache) { w.observe(numbered(1)); w.observeDeletion(numbered(2)) }, "", 2, 2},
		{"a late deletion of an earlier Work with the name", func(w *workCache) {
			w.observe(numbered(5, uid("2")))
			w.observeDeletion(numbered(4))
		}, "5", 1, 1},
		{"a deletion before the response to a write", func(w *workCache) {
			w.observe(numbered(1))
			end := w.beginWrite(numbered(1).key())
			w.observeDeletion(numbered(2))
			end(numbered(2))
		}, "", 2, 2},
		{"a deletion and a new Work before the response to a write", func(w *workCache) {
			w.observe(numbered(1))
			end := w.beginWrite(numbered(1).key())
			w.observeDeletion(numbered(2))
			w.observe(numbered(3, uid("2")))
			end(numbered(2))
		}, "3", 3, 3},
		{"the deletion has begun", func(w *workCache) { w.observe(numbered(1)); w.deleted(numbered(1)) }, "1+", 2, 2},
		{"the deletion has begun, reported twice", func(w *workCache) {
			w.observe(numbered(1))
			w.deleted(numbered(1))
			w.deleted(numbered(1))
		}, "1+", 2, 2},
		{"a late event after the deletion has begun", func(w *workCache) {
			w.observe(numbered(1))
			w.deleted(numbered(1))
			w.observe(numbered(2))
		}, "2+", 2, 2},
		{"a new Work with the name of a deleted one", func(w *workCache) {
			w.observe(numbered(1))
			w.deleted(numbered(1))
			w.observeDeletion(numbered(1))
			w.observe(numbered(3, uid("2")))
		}, "3", 4, 4},
		{"the deletion of an earlier Work with the name has begun", func(w *workCache) {
			w.observe(numbered(3,
				uid("2")))
			w.deleted(numbered(1))
		}, "3", 1,
			1},
		{"the Work belongs to another WorkSet now", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, func(r *record) { r.set.Name = "other" }))
		}, "", 3, 1},
		{"the Work belongs to no WorkSet now", func(w *workCache) {
			w.observe(numbered(1))
			w.observe(numbered(2, func(r *record) { r.set = types.NamespacedName{} }))
		}, "", 2, 1},
	} {
		notified := 0
		w := newWorkCache(func(types.NamespacedName) { notified++ })
		test.do(w)
		got := ""
		for _, r := range w.at(web, east).records {
			if got = r.ResourceVersion; r.DeletionTimestamp != nil {
				got += "+"
			}
		}
		require.Equal(t, test.want, got, test.reason)
		require.Equal(t, test.notified, notified, "%s: notifications", test.reason)
		if test.want != "" {
			require.EqualValues(t, test.versions, w.at(web, east).version, "%s: versions", test.reason)
		}
		w.observeDeletion(numbered(99))
		w.observeDeletion(numbered(99, uid("2")))
		require.Zero(t, w.works.Len(), "%s: Works after the deletion", test.reason)
		require.Empty(t, w.pending, "%s: pending writes after the deletion", test.reason)
		require.Empty(t, w.sets, "%s: WorkSets after the deletion", test.reason)
	}
}

func TestRecordOf(t *testing.T) {
	labels := map[string]string{v1alpha1.WorkSetLabel: "web", v1alpha1.WorkSetNamespaceLabel: "shop"}
	for _, test := range []struct {
		reason      string
		labels      map[string]string
		annotations map[string]string
		want        types.NamespacedName
		marked      bool
	}{
		{"the annotations of a generated Work", labels, map[string]string{v1alpha1.WorkSetAnnotation: "shop/web",
			workv1alpha1.GeneratedByAnnotation: "WorkSet shop/web"}, web, true},
		{"a Work of an earlier release", labels, map[string]string{v1alpha1.WorkSetAnnotation: "shop/web"}, web, false},
		{"a Work with a requested deletion", labels, map[string]string{
			v1alpha1.WorkSetAnnotation: "shop/web", workv1alpha1.GeneratedByAnnotation: "WorkSet shop/web",
			workv1alpha1.DeletionRequestedByAnnotation: "uid",
		}, web, false},
		{"the annotations were removed", labels, nil, web, false},
		{"the labels were removed", nil, map[string]string{v1alpha1.WorkSetAnnotation: "shop/web"}, web, false},
		{"the annotation names another WorkSet than the labels", labels,
			map[string]string{v1alpha1.WorkSetAnnotation: "shop/other"},
			types.NamespacedName{Namespace: "shop", Name: "other"}, false},
		{"the annotation is invalid", labels, map[string]string{v1alpha1.WorkSetAnnotation: "a/b/c"},
			types.NamespacedName{}, false},
		{"no labels and no annotations", nil, nil, types.NamespacedName{}, false},
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
