package addon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestWorks_ForeignWorkIsReported checks that an add-on reports a foreign Work with the name of its own Work, in any
// namespace, and does not change it.
func TestWorks_ForeignWorkIsReported(t *testing.T) {
	testkit.Virtual(t, testWorksForeignWorkIsReported)
}

func testWorksForeignWorkIsReported(t *testing.T) {
	h := newHostingHub(t)
	h.runAgents()
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("own")}, hostedAgent{name: h.name("hosted")},
		hostedAgent{name: h.name("forged")}}})
	hostedName := func(name string) string {
		return "addon-" + template.HostingNamespace(h.name(name), h.namespaceOf("a")) + "-0"
	}
	for _, row := range []struct {
		name, reason, on, taken string
		labels                  map[string]string
	}{
		{"own", "a Work without labels belongs to a user", "", "addon-" + h.name("own") + "-0", nil},
		{"hosted", "a Work without labels on a hosting member belongs to a user", "h", hostedName("hosted"), nil},
		{"forged",
			"a Work that is labeled for another member belongs to that member", "h", hostedName("forged"), map[string]string{
				v1alpha1.AddonLabel: h.name("forged"), v1alpha1.HostedForLabel: h.namespaceOf("b"),
			}},
	} {
		testkit.Step(t, row.name, func() {
			h := h.in(t)
			at := row.on
			if at == "" {
				at = "a"
			}
			foreign := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespaceOf(at), Name: row.taken,
				Labels: row.labels}}
			foreign.Spec.Manifests = []workv1alpha1.Manifest{{}}
			foreign.Spec.Manifests[0].Raw = []byte(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs","namespace":"default"}}`)
			require.NoError(t, h.Client.Create(t.Context(), foreign))
			h.addon(row.name, func(s *v1alpha1.AddonSpec) { s.HostingMembers = []string{h.name("h")} })
			m := h.createMemberAddon(row.name, "a", func(s *v1alpha1.MemberAddonSpec) {
				if row.on != "" {
					s.HostingMember = h.name(row.on)
				}
			})
			condition := h.requireCondition(m, v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse,
				v1alpha1.ReasonManifestsFailed)
			require.Contains(t, condition.Message, foreign.Namespace+"/"+foreign.Name, row.reason)
			require.Contains(t, condition.Message, "does not belong to the add-on", row.reason)
			require.NoError(t, h.Client.Delete(t.Context(), foreign))
			h.triggerReconcile(row.name, "a") // without an event
			h.Holds("the add-on is available after the deletion of the foreign Work", func() bool {
				return isTrue(h.memberAddon(row.name, "a"), v1alpha1.ConditionAvailable)
			})
		})
	}
}
