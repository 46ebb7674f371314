package addon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
)

// TestAllow_DefaultIsOwnNamespace checks that a user who can write a MemberAddon cannot use configurations of other
// namespaces.
func TestAllow_DefaultIsOwnNamespace(t *testing.T) {
	testkit.Virtual(t, testAllowDefaultIsOwnNamespace)
}

func testAllowDefaultIsOwnNamespace(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.runAgents()
	h.start(addon.Options{Agents: []addon.Agent{reader{h.name("read")}}})
	h.addon("read", func(s *v1alpha1.AddonSpec) { s.Configs = []v1alpha1.ConfigKind{{Resource: "configmaps"}} })
	for _, namespace := range []string{h.Namespace, h.namespaceOf("b")} {
		require.NoError(t, h.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: "limits"}, Data: map[string]string{"value": "II"}}))
	}
	withConfig := func(namespace string) func(*v1alpha1.MemberAddonSpec) {
		return func(s *v1alpha1.MemberAddonSpec) {
			s.Configs = []v1alpha1.ConfigReference{
				{Resource: "configmaps", ObjectName: v1alpha1.ObjectName{Namespace: namespace, Name: "limits"}}}
		}
	}
	h.createMemberAddon("read", "a", withConfig(h.Namespace))
	h.createMemberAddon("read", "b", withConfig(h.namespaceOf("b")))
	h.Holds("b has the add-on", func() bool {
		return isTrue(h.memberAddon("read", "b"), v1alpha1.ConditionAvailable)
	})
	h.Holds("the rejected reference of a is reported", func() bool {
		return reason(h.memberAddon("read", "a"), v1alpha1.ConditionDegraded) == v1alpha1.ReasonUnsupported
	})
	require.Contains(t, h.memberAddon("read", "a").Status.Message, "its own namespace")
	require.Empty(t, h.works("read", "a"))
}
