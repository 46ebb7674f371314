package addon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// leave starts the leave of a member.
func (h *hub) leave(name string) {
	h.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: h.name(name)}, m))
	before := m.DeepCopy()
	m.Spec.State = membershipv1alpha1.StateLeave
	require.NoError(h.T, h.Client.Patch(h.T.Context(), m, client.MergeFrom(before)))
}

// TestLeave_AddonStaysUnchanged checks that an add-on on a leaving member stays unchanged until it is removed, and does
// not get the configuration of members without a Placement.
func TestLeave_AddonStaysUnchanged(t *testing.T) { testkit.Virtual(t, testLeaveAddonStaysUnchanged) }

func testLeaveAddonStaysUnchanged(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c", "d")
	h.choose("all", "a", "b", "c")
	members := h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}, MaxRemoving: 1})
	h.color("defaults", "grey")
	h.color("colors", "blue")
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Configs = []v1alpha1.ConfigKind{{
			Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{{Namespace: h.Namespace, Name: "defaults"}},
		}}
		s.Install.Placements[0].Configs = []v1alpha1.ConfigReference{h.reference("colors")}
		s.Removal.DeadlineSeconds = 3600
	})
	blue := func(names ...string) bool {
		return count(names, func(name string) bool {
			return h.colorOf("echo", name) == "blue" && isTrue(h.memberAddon("echo", name), v1alpha1.ConditionAvailable)
		}) == len(names)
	}
	require.NoError(t, h.Client.Create(t.Context(),
		&v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespaceOf("d"), Name: h.name("echo")}}))
	h.Holds("the MemberAddon of a user is grey", func() bool {
		return h.colorOf("echo", "d") == "grey" && isTrue(h.memberAddon("echo", "d"), v1alpha1.ConditionAvailable)
	})
	h.Holds("all are blue", func() bool { return blue("a", "b", "c") })
	r.quiet(t)

	h.leave("a")
	h.leave("d")
	r.quiet(t)
	require.True(t, blue("a"), "want no change on a leaving member")
	h.color("colors", "red")
	h.color("defaults", "black")
	h.Holds("the others are red", func() bool {
		return h.colorOf("echo", "b") == "red" && h.colorOf("echo", "c") == "red"
	})
	r.quiet(t)
	require.Equal(t, "blue", h.colorOf("echo", "a"), "want no new color on a leaving member")
	require.Equal(t, "grey", h.colorOf("echo", "d"), "want no new color for the MemberAddon of a user on a leaving member")

	members.stopAgent("b")
	members.stopAgent("c")
	require.NoError(t, h.Client.Delete(t.Context(), &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: h.name("echo")}}))
	waiting := ""
	h.Holds("one removal is running, and one is waiting", func() bool {
		removing := 0
		for _, name := range []string{"a", "b", "c"} {
			if h.memberAddon("echo", name) != nil && h.memberAddon("echo", name).DeletionTimestamp != nil {
				removing++
			} else if name != "a" {
				waiting = name
			}
		}
		return removing > 0 && waiting != ""
	})
	r.quiet(t)
	require.Equal(t, "red", h.colorOf("echo", waiting), "want no change of a member whose removal is waiting")
}
