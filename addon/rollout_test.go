package addon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// color creates or changes an AddonConfig.
func (h *hub) color(config, color string) {
	h.T.Helper()
	c := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: config}}
	c.Spec.Variables = []v1alpha1.Variable{{Name: "COLOR", Value: color}}
	existing := &v1alpha1.AddonConfig{}
	if err := h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(c), existing); err != nil {
		require.NoError(h.T, h.Client.Create(h.T.Context(), c))
		return
	}
	existing.Spec = c.Spec
	require.NoError(h.T, h.Client.Update(h.T.Context(), existing))
}

func (h *hub) reference(config string) v1alpha1.ConfigReference {
	return v1alpha1.ConfigReference{
		Group: v1alpha1.GroupName, Resource: "addonconfigs", ObjectName: v1alpha1.ObjectName{Namespace: h.Namespace,
			Name: config},
	}
}

// colorOf returns the color in the Works of a member; empty: there are none.
func (h *hub) colorOf(name, member string) string {
	for _, w := range h.works(name, member) {
		for _, m := range w.Spec.Manifests {
			if _, after, found := strings.Cut(string(m.Raw), `"color":"`); found {
				color, _, _ := strings.Cut(after, `"`)
				return color
			}
		}
	}
	return ""
}

func (h *hub) get(name string) *v1alpha1.Addon {
	h.T.Helper()
	a := &v1alpha1.Addon{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: h.name(name)}, a))
	return a
}

func count(names []string, condition func(string) bool) (n int) {
	for _, name := range names {
		if condition(name) {
			n++
		}
	}
	return n
}

// TestRollout checks that a new configuration is rolled out slot by slot, halts when more members fail than
// permitted, and continues when they have recovered.
func TestRollout(t *testing.T) { testkit.Virtual(t, testRollout) }

func testRollout(t *testing.T) {
	h := newHub(t)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	h.members(names...)
	h.choose("all", names...)
	members := h.runAgents()
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	h.color("colors", "blue")
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs"}}
		p := &s.Install.Placements[0]
		p.Configs = []v1alpha1.ConfigReference{h.reference("colors")}
		p.Rollout = placementv1alpha1.RolloutStrategy{
			Type: placementv1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(3)),
			MaxFailures: new(intstr.FromInt32(1)),
		}
	})
	has := func(color string) int {
		return count(names, func(name string) bool {
			return h.colorOf("echo", name) == color && isTrue(h.memberAddon("echo", name), v1alpha1.ConditionAvailable)
		})
	}
	h.Holds("all are blue", func() bool { return has("blue") == len(names) })

	members.setReadiness(func(w *workv1alpha1.Work) bool {
		refuses := w.Namespace == h.namespaceOf("m01") || w.Namespace == h.namespaceOf("m02")
		return !refuses || !manifestsContain(w, "red")
	})
	h.color("colors", "red")
	h.Holds("the rollout halts", func() bool {
		p := h.get("echo").Status.Placements
		return len(p) == 1 && p[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	updated := count(names, func(name string) bool { return h.colorOf("echo", name) == "red" })
	require.LessOrEqual(t, updated, 5, "want at most three slots and two failures")
	t.Log(updated, h.get("echo").Status.Message)

	members.setReadiness(nil)
	h.Holds("all are red", func() bool { return has("red") == len(names) })
}
