package addon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
)

// TestEarlierAddon_KeptIsReported checks that an Addon names the members whose MemberAddons were created for an
// earlier Addon and are kept although no Placement has selected the members, and that the message ends when a
// Placement selects the member, or a user deletes the MemberAddon.
func TestEarlierAddon_KeptIsReported(t *testing.T) { testkit.Virtual(t, testEarlierAddon) }

func testEarlierAddon(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.runAgents()
	h.choose("all", "a", "b", "c")
	r := h.start(h.painters("x"))
	h.addon("x", h.byPlacements("all"))
	for _, m := range []string{"a", "b", "c"} {
		h.waitForColor("x", m, "all")
	}
	r.stop()
	for _, m := range []string{"a", "b"} {
		object := h.memberAddon("x", m)
		before := object.DeepCopy()
		object.Annotations[v1alpha1.AddonUIDAnnotation] = "earlier"
		require.NoError(t, h.Client.Patch(t.Context(), object, client.MergeFrom(before)))
	}
	h.choose("all", "c")
	h.start(h.painters("x"))
	reports := func(description, names string) {
		t.Helper()
		h.Eventually(description, func() error {
			for _, c := range h.get("x").Status.Conditions {
				if c.Reason == v1alpha1.ReasonEarlierAddon && strings.Contains(c.Message, "has selected: "+names+". Select") {
					return nil
				}
			}
			return fmt.Errorf("want condition EarlierAddon for "+names+", got %+v", h.get("x").Status.Conditions)
		})
	}
	reports("both are kept", h.name("a")+", "+h.name("b"))
	require.False(t, meta.IsStatusConditionTrue(h.get("x").Status.Conditions, v1alpha1.ConditionDegraded),
		"want an Addon that is not degraded")
	h.choose("all", "b", "c")
	reports("one is kept", h.name("a"))
	require.NoError(t, h.Client.Delete(t.Context(), h.memberAddon("x", "a")))
	h.waitForRemoval("x", "a")
	h.Holds("none is kept", func() bool {
		for _, c := range h.get("x").Status.Conditions {
			if c.Reason == v1alpha1.ReasonEarlierAddon {
				return false
			}
		}
		return true
	})
	h.waitForColor("x", "b", "all")
}
