package tenancy

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

func TestProtectedLabels_KeysOfAllSelectors(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	set := func(name string, selector *metav1.LabelSelector) client.Object {
		return &v1alpha1.ClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterSetSpec{Selector: selector},
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		set("global", &metav1.LabelSelector{}),
		set("missing", nil),
		set("europe", &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu", "tier": "gold"}}),
		set("invalid", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "broken", Operator: "Like"}, {Key: "region", Operator: metav1.LabelSelectorOpExists},
		}}),
	).Build()
	keys, err := ProtectedLabels(reader)(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"broken", "region", "tier"}, keys)

	_, err = ProtectedLabels(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build())(t.Context())
	require.ErrorContains(t, err, "list ClusterSets")
}
