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

// TestDeletePolicy_CurrentValue checks that deletions follow the current value of spec.work.delete, and not the value
// in the Works.
func TestDeletePolicy_CurrentValue(t *testing.T) { testkit.Virtual(t, testDeletePolicyCurrentValue) }

func testDeletePolicyCurrentValue(t *testing.T) {
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
		deleted       string // the Works that are deleted
		do            func(name string)
	}{
		{"pinned", "the options are the current ones, not those of the pinned revision", func(s *v1alpha1.WorkSet) {
			s.Spec.Revision = s.Status.Revision
		}, orphan, "[a/pinned-0 b/pinned-0]", h.deleteWorkSet},
		{"paused", "a paused rollout does not deliver the options", pause, orphan, "[a/paused-0 b/paused-0]",
			h.deleteWorkSet},
		{"hasty", "the options are not delivered before the deletion", none, orphan, "[a/hasty-0 b/hasty-0]",
			h.deleteWorkSet},
		{"same", "unchanged options: each Work gets only the request", none, none, "[a/same-0 b/same-0]", h.deleteWorkSet},
		{"unchosen", "a cluster that is not selected any more gets no revision", pause, orphan, "[b/unchosen-0]",
			func(name string) { h.choose(name, "a") }},
		{"crashed", "the restarted controller only deletes", pause, orphan, "[a/crashed-0 b/crashed-0]", func(name string) {
			broken.Store(true)
			h.deleteWorkSet(name)
			h.Holds("Works are not deleted", func() bool { return failed.Load() > 1 })
			r.stop()
			broken.Store(false)
			r = h.start(workset.Options{})
		}},
	} {
		testkit.Step(t, c.name, func() {
			h.place(c.name, "a", "b")
			h.distribute(c.name, c.name, nil, configMap(c.name, nil))
			h.Holds("each cluster has a Work", func() bool {
				return len(h.works(c.name)) == 2 && h.get(c.name).Status.Rollout.Phase != ""
			})
			h.change(c.name, c.before)
			writes, uid := r.wire.Count("PATCH works"), h.get(c.name).UID
			h.change(c.name, c.after)
			c.do(c.name)
			deleting := func() map[string]*workv1alpha1.Work {
				found := h.works(c.name)
				for name, w := range found {
					if w.DeletionTimestamp == nil {
						delete(found, name)
					}
				}
				return found
			}
			h.Holds("these Works are deleted: "+c.deleted, func() bool { return keys(deleting()) == c.deleted })
			want := workv1alpha1.OrphanObject
			if c.name == "crashed" {
				require.Zero(t, r.wire.Count("PATCH works"), c.reason)
			}
			if c.name == "same" {
				want = workv1alpha1.DeleteObject
				require.Equal(t, writes+2, r.wire.Count("PATCH works"), c.reason)
			}
			for name, w := range deleting() {
				require.Equal(t, want, w.Spec.Delete.Action, "%s: %s", name, c.reason)
				require.Equal(t, string(uid), w.Annotations[workv1alpha1.DeletionRequestedByAnnotation], "%s: %s", name, c.reason)
			}
			for name, w := range h.works(c.name) {
				if w.DeletionTimestamp == nil {
					require.Equal(t, workv1alpha1.DeleteObject, w.Spec.Delete.Action, "%s: the rollout delivers the options later",
						name)
				}
			}
		})
	}
}

// deleteWorkSet deletes a WorkSet.
func (h *hub) deleteWorkSet(name string) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Delete(h.T.Context(), h.get(name)))
}
