package workset_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestPartsAsTheWorkSetSays checks that deletions follow the current value of spec.work.delete, and not the value in
// the Works.
func TestPartsAsTheWorkSetSays(t *testing.T) { testkit.Virtual(t, testPartsAsTheWorkSetSays) }

func testPartsAsTheWorkSetSays(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	var broken atomic.Bool
	var failed atomic.Int32
	h.wrap = failing(func(r *http.Request) bool {
		fails := broken.Load() && r.Method == http.MethodDelete && mustertest.AttributesOf(r).Resource == "works"
		if fails {
			failed.Add(1)
		}
		return fails
	}, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: `+
		`leader changed","reason":"InternalError","code":500}`)
	r := h.start(workset.Options{})
	orphan := func(s *v1alpha1.WorkSet) { s.Spec.Work.Delete.Action = workv1alpha1.OrphanObject }
	pause := func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutPause }
	none := func(*v1alpha1.WorkSet) {}
	for _, c := range []struct {
		name, reason  string
		before, after func(*v1alpha1.WorkSet)
		works         string // that go
		do            func(name string)
	}{
		{"pinned", "a revision that is held has the options of then", func(s *v1alpha1.WorkSet) {
			s.Spec.Revision = s.Status.Revision
		}, orphan, "[a/pinned-0 b/pinned-0]", h.end},
		{"paused", "a rollout that waits brings nobody the options", pause, orphan, "[a/paused-0 b/paused-0]", h.end},
		{"hasty", "nobody has brought them by the time of the deletion", none, orphan, "[a/hasty-0 b/hasty-0]", h.end},
		{"same", "what says so already gets the request alone", none, none, "[a/same-0 b/same-0]", h.end},
		{"unchosen", "a cluster that is chosen no longer is not told a revision any more", pause, orphan, "[b/unchosen-0]",
			func(name string) { h.choose(name, "a") }},
		{"crashed", "who goes on has only to delete", pause, orphan, "[a/crashed-0 b/crashed-0]", func(name string) {
			broken.Store(true)
			h.end(name)
			h.eventually("Works are not deleted", func() bool { return failed.Load() > 1 })
			r.stop()
			broken.Store(false)
			r = h.start(workset.Options{})
		}},
	} {
		testkit.Step(t, c.name, func() {
			h.place(c.name, "a", "b")
			h.distribute(c.name, c.name, nil, configMap(c.name, nil))
			h.eventually("each cluster has a Work", func() bool {
				return len(h.works(c.name)) == 2 && h.get(c.name).Status.Rollout.Phase != ""
			})
			h.change(c.name, c.before)
			writes, uid := r.wire.Count("PATCH works"), h.get(c.name).UID
			h.change(c.name, c.after)
			c.do(c.name)
			going := func() map[string]*workv1alpha1.Work {
				found := h.works(c.name)
				for name, w := range found {
					if w.DeletionTimestamp == nil {
						delete(found, name)
					}
				}
				return found
			}
			h.eventually("they go: "+c.works, func() bool { return keys(going()) == c.works })
			want := workv1alpha1.OrphanObject
			if c.name == "crashed" {
				require.Zero(t, r.wire.Count("PATCH works"), c.reason)
			}
			if c.name == "same" {
				want = workv1alpha1.DeleteObject
				require.Equal(t, writes+2, r.wire.Count("PATCH works"), c.reason)
			}
			for name, w := range going() {
				require.Equal(t, want, w.Spec.Delete.Action, "%s: %s", name, c.reason)
				require.Equal(t, string(uid), w.Annotations[workv1alpha1.DeletionRequestedByAnnotation], "%s: %s", name, c.reason)
			}
			for name, w := range h.works(c.name) {
				if w.DeletionTimestamp == nil {
					require.Equal(t, workv1alpha1.DeleteObject, w.Spec.Delete.Action, "%s is told in its turn", name)
				}
			}
		})
	}
}

// end deletes a WorkSet.
func (h *hub) end(name string) {
	h.t.Helper()
	require.NoError(h.t, h.client.Delete(h.t.Context(), h.get(name)))
}
