package leave

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// TestGate_ReleaseWithoutRemoval checks that MemberAddons which are deleted with a namespace lose the finalizer of
// add-ons, and no other one, and that no other MemberAddon is changed.
func TestGate_ReleaseWithoutRemoval(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	addon := func(name string) *v1alpha1.MemberAddon {
		return &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{
			Namespace: "member-east", Name: name, Finalizers: []string{v1alpha1.MemberAddonFinalizer, "example.com/observer"},
		}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(addon("deleted"), addon("kept")).Build()
	require.NoError(t, c.Delete(t.Context(), addon("deleted")))

	require.NoError(t, Gate(c).Release(t.Context(), membership.Member{Name: "east", Namespace: "member-east"}))
	for name, want := range map[string][]string{
		"deleted": {"example.com/observer"}, "kept": {v1alpha1.MemberAddonFinalizer, "example.com/observer"},
	} {
		got := &v1alpha1.MemberAddon{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "member-east", Name: name}, got))
		require.Equal(t, want, got.Finalizers, name)
	}
}
