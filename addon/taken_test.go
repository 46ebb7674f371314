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

// TestTaken checks that an add-on reports a foreign Work with the name of its own Work, in any namespace, and does
// not change it.
func TestTaken(t *testing.T) { testkit.Virtual(t, testTaken) }

func testTaken(t *testing.T) {
	h := newHostingHub(t)
	h.obey()
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("own")}, lodger{name: h.name("hosted")},
		lodger{name: h.name("forged")}}})
	hostedName := func(name string) string {
		return "addon-" + template.HostingNamespace(h.name(name), h.namespaceOf("a")) + "-0"
	}
	for _, row := range []struct {
		name, reason, on, taken string
		labels                  map[string]string
	}{
		{"own", "a Work without labels is a person's", "", "addon-" + h.name("own") + "-0", nil},
		{"hosted", "so it is on a hosting member", "h", hostedName("hosted"), nil},
		{"forged", "one that is labeled for another member is not this one's", "h", hostedName("forged"), map[string]string{
			v1alpha1.AddonLabel: h.name("forged"), v1alpha1.HostedForLabel: h.namespaceOf("b"),
		}},
	} {
		testkit.Step(t, row.name, func() {
			h := h.in(t)
			at := row.on
			if at == "" {
				at = "a"
			}
			theirs := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespaceOf(at), Name: row.taken,
				Labels: row.labels}}
			theirs.Spec.Manifests = []workv1alpha1.Manifest{{}}
			theirs.Spec.Manifests[0].Raw = []byte(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs","namespace":"default"}}`)
			require.NoError(t, h.client.Create(t.Context(), theirs))
			h.addon(row.name, func(s *v1alpha1.AddonSpec) { s.HostingMembers = []string{h.name("h")} })
			m := h.own(row.name, "a", func(s *v1alpha1.MemberAddonSpec) {
				if row.on != "" {
					s.HostingMember = h.name(row.on)
				}
			})
			said := h.says(m, v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse, v1alpha1.ReasonManifestsFailed)
			require.Contains(t, said.Message, theirs.Namespace+"/"+theirs.Name, row.reason)
			require.Contains(t, said.Message, "does not belong to the add-on", row.reason)
			require.NoError(t, h.client.Delete(t.Context(), theirs))
			h.poke(row.name, "a") // without an event
			h.eventually("it is well once that is gone", func() bool {
				return is(h.memberAddon(row.name, "a"), v1alpha1.ConditionAvailable)
			})
		})
	}
}
