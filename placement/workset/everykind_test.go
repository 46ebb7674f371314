package workset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// TestEveryKind_Namespace checks that a WorkSet distributes its namespace with all objects in it. If the namespace has
// no object of a kind any more, the clusters keep the objects of this kind unless spec.allowEmpty is set.
func TestEveryKind_Namespace(t *testing.T) { testkit.Virtual(t, testEveryKindNamespace) }

func testEveryKindNamespace(t *testing.T) {
	h := newTenantHub(t)
	h.members("east")
	h.bind("use", tenancyv1alpha1.GlobalClusterSet, nil)
	h.place("all")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "key"}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "config"}}
	require.NoError(t, h.Client.Create(t.Context(), secret))
	require.NoError(t, h.Client.Create(t.Context(), config))
	h.distribute("everything", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{{Kind: v1alpha1.EveryKind}}
	})
	h.succeeded("everything", 1)
	text := func() (all string) {
		for _, w := range h.works("everything") {
			for i := range w.Spec.Manifests {
				all += string(w.Spec.Manifests[i].Raw)
			}
		}
		return all
	}
	for _, want := range []string{`"name":"key"`, `"name":"config"`, `"kind":"Namespace"`} {
		require.Contains(t, text(), want)
	}
	require.NotContains(t, text(), "muster.dev", "the Placement and the WorkSet belong to the hub")

	require.NoError(t, h.Client.Delete(t.Context(), secret))
	require.Contains(t, h.degraded("everything", v1alpha1.ReasonSelectionEmpty),
		"spec.resources[0]: no objects of kind Secret match")
	require.Contains(t, text(), `"name":"key"`)
	h.change("everything", func(s *v1alpha1.WorkSet) { s.Spec.AllowEmpty = true })
	h.Holds("the Secret is removed", func() bool { return !strings.Contains(text(), `"name":"key"`) })
	require.Contains(t, text(), `"name":"config"`)
}
