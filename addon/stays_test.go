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
	h.t.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.t, h.client.Get(h.t.Context(), client.ObjectKey{Name: h.name(name)}, m))
	before := m.DeepCopy()
	m.Spec.State = membershipv1alpha1.StateLeave
	require.NoError(h.t, h.client.Patch(h.t.Context(), m, client.MergeFrom(before)))
}

// TestStays checks that an add-on on a leaving member stays unchanged until it is removed, and does not get the
// configuration of members without a Placement.
func TestStays(t *testing.T) { testkit.Virtual(t, testStays) }

func testStays(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c", "d")
	h.choose("all", "a", "b", "c")
	members := h.obey()
	r := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}, MaxRemoving: 1})
	h.color("defaults", "grey")
	h.color("colors", "blue")
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.placed("all")(s)
		s.Configs = []v1alpha1.ConfigKind{{
			Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{{Namespace: h.namespace, Name: "defaults"}},
		}}
		s.Install.Placements[0].Configs = []v1alpha1.ConfigReference{h.reference("colors")}
		s.Removal.DeadlineSeconds = 3600
	})
	blue := func(names ...string) bool {
		return count(names, func(name string) bool {
			return h.colorOf("echo", name) == "blue" && is(h.memberAddon("echo", name), v1alpha1.ConditionAvailable)
		}) == len(names)
	}
	require.NoError(t, h.client.Create(t.Context(),
		&v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespaceOf("d"), Name: h.name("echo")}}))
	h.eventually("who has it by hand is grey", func() bool {
		return h.colorOf("echo", "d") == "grey" && is(h.memberAddon("echo", "d"), v1alpha1.ConditionAvailable)
	})
	h.eventually("all are blue", func() bool { return blue("a", "b", "c") })
	r.quiet(t)

	h.leave("a")
	h.leave("d")
	r.quiet(t)
	require.True(t, blue("a"), "a member that leaves")
	h.color("colors", "red")
	h.color("defaults", "black")
	h.eventually("the others are red", func() bool {
		return h.colorOf("echo", "b") == "red" && h.colorOf("echo", "c") == "red"
	})
	r.quiet(t)
	require.Equal(t, "blue", h.colorOf("echo", "a"), "a member that leaves gets nothing new")
	require.Equal(t, "grey", h.colorOf("echo", "d"), "nor does one that has it by hand")

	members.die("b")
	members.die("c")
	require.NoError(t, h.client.Delete(t.Context(), &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: h.name("echo")}}))
	waits := ""
	h.eventually("one goes, and one waits for its turn", func() bool {
		going := 0
		for _, name := range []string{"a", "b", "c"} {
			if h.memberAddon("echo", name) != nil && h.memberAddon("echo", name).DeletionTimestamp != nil {
				going++
			} else if name != "a" {
				waits = name
			}
		}
		return going > 0 && waits != ""
	})
	r.quiet(t)
	require.Equal(t, "red", h.colorOf("echo", waits), "one that waits for its turn to go")
}
