package addon

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestRecord_KeepsMetadataOfMuster checks that the cache keeps no label and no annotation that only the agent uses.
func TestRecord_KeepsMetadataOfMuster(t *testing.T) {
	r := recordOf(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{v1alpha1.AddonLabel: "mesh", "example.com/large": "x"},
		Annotations: map[string]string{v1alpha1.RevisionAnnotation: "1", "example.com/large": "x"},
	}})
	require.Equal(t, map[string]string{v1alpha1.AddonLabel: "mesh"}, r.Labels)
	require.Equal(t, map[string]string{v1alpha1.RevisionAnnotation: "1"}, r.Annotations)
}
