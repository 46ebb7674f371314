package leave

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestGate_ReleaseWithoutARequest checks that Works which are deleted with a namespace are released without the
// annotation of a deletion request, so that the agent keeps their objects, and that no other Work is changed.
func TestGate_ReleaseWithoutARequest(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	work := func(name, other string) *v1alpha1.Work {
		return &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "member-east", Name: name, Finalizers: []string{v1alpha1.Finalizer, other},
		}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(work("deleted", "example.com/observer"),
		work("kept", "example.com/observer")).Build()
	require.NoError(t, c.Delete(t.Context(), work("deleted", "")))

	require.NoError(t, Gate(c).Release(t.Context(), membership.Member{Name: "east", Namespace: "member-east"}))
	for name, want := range map[string][]string{
		"deleted": {"example.com/observer"}, "kept": {v1alpha1.Finalizer, "example.com/observer"},
	} {
		got := &v1alpha1.Work{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "member-east", Name: name}, got))
		require.Equal(t, want, got.Finalizers, name)
		require.Empty(t, got.Annotations, "Work %s has no note of a request", name)
	}
}
