package addon_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestRemoval_ForeignFinalizerKeepsMemberAddon checks that a MemberAddon which a finalizer of another controller keeps
// reports this, and delays neither a rollout nor the status of its Addon, also after a restart.
func TestRemoval_ForeignFinalizerKeepsMemberAddon(t *testing.T) {
	testkit.Virtual(t, testRemovalForeignFinalizerKeepsMemberAddon)
}

func testRemovalForeignFinalizerKeepsMemberAddon(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "dead")
	members := h.runAgents()
	h.choose("all", "a", "b", "dead")
	r := h.start(h.painters("x"))
	h.addon("x", h.byPlacements("all"))
	finalizers := func(member string, change func([]string) []string) {
		m := h.memberAddon("x", member)
		before := m.DeepCopy()
		m.Finalizers = change(m.Finalizers)
		require.NoError(t, h.Client.Patch(t.Context(), m, client.MergeFrom(before)))
	}
	for _, m := range []string{"a", "b", "dead"} {
		h.waitForColor("x", m, "all")
		finalizers(m, func(all []string) []string { return append(all, "example.com/backup") })
	}
	members.stopAgent("dead")
	h.health("dead", metav1.ConditionUnknown)
	m := h.memberAddon("x", "dead")
	before := m.DeepCopy()
	m.Spec.RemovalDeadlineSeconds = new(int32(0))
	require.NoError(t, h.Client.Patch(t.Context(), m, client.MergeFrom(before)))
	h.choose("all", "b")
	const message = "The add-on is removed. Finalizers of other clients keep the MemberAddon: example.com/backup."
	a := h.requireCondition(h.memberAddon("x", "a"), v1alpha1.ConditionDegraded, metav1.ConditionFalse,
		v1alpha1.ReasonAsDesired)
	require.NotContains(t, a.Message, "removalDeadlineSeconds")
	h.Holds("a reports the remaining finalizer", func() bool {
		return h.memberAddon("x", "a").Status.Message == message
	})
	h.Eventually("the forced removal reports the remaining finalizer and the reason", func() error {
		m := h.memberAddon("x", "dead")
		degraded := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDegraded)
		if degraded.Reason == v1alpha1.ReasonDeadlineExceeded && strings.Count(degraded.Message, message) == 1 &&
			strings.Contains(degraded.Message, "removalDeadlineSeconds") {
			return nil
		}
		return fmt.Errorf("the MemberAddon reports %s: %s; %s: %+v", degraded.Reason, degraded.Message, m.Status.Message, m)
	})
	r.quiet(t)
	r.stop()
	r = h.start(h.painters("x"))
	h.Holds("the controllers read Works", func() bool { return r.wire.Count("GET works") > 0 })
	r.quiet(t)
	require.Empty(t, r.wire.Writes(), "a restart must not write")
	h.color("all", "green")
	h.waitForColor("x", "b", "green")
	h.Holds("the Addon counts both removals", func() bool {
		status := h.get("x").Status
		return status.Counts.Removing == 2 && status.Counts.Updated == 1 && status.Counts.Available == 1 &&
			len(status.ForcedRemovals) == 1
	})
	for _, m := range []string{"a", "dead"} {
		finalizers(m, func([]string) []string { return nil })
		h.waitForRemoval("x", m)
	}
	h.Holds("the Addon counts no removals", func() bool {
		return h.get("x").Status.Counts.Removing == 0 && len(h.get("x").Status.ForcedRemovals) == 1
	})
}

// TestRollout_DeniedStatusDelaysNoMember checks that a MemberAddon whose status cannot be written delays no rollout of
// its Addon.
func TestRollout_DeniedStatusDelaysNoMember(t *testing.T) {
	testkit.Virtual(t, testRolloutDeniedStatusDelaysNoMember)
}

func testRolloutDeniedStatusDelaysNoMember(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.runAgents()
	h.choose("all", "a", "b", "c")
	denies := &atomic.Bool{}
	h.wrap = denying(func(r *http.Request) bool {
		to := mustertest.AttributesOf(r)
		return denies.Load() && to.Resource == "memberaddons/status" && to.Namespace == h.namespaceOf("a")
	})
	h.start(h.painters("x"))
	h.addon("x", func(s *v1alpha1.AddonSpec) {
		h.byPlacements("all")(s)
		s.Install.Placements[0].Rollout = placementv1alpha1.RolloutStrategy{Type: placementv1alpha1.RolloutProgressive,
			MaxConcurrency: new(intstr.FromInt32(1))}
	})
	for _, m := range []string{"a", "b", "c"} {
		h.waitForColor("x", m, "all")
	}
	denies.Store(true)
	h.color("all", "green")
	for _, m := range []string{"a", "b", "c"} {
		h.Holds(m+" is green", func() bool { return h.colorOf("x", m) == "green" })
	}
	denies.Store(false)
	h.triggerReconcile("x", "a")
	h.waitForColor("x", "a", "green")
}
