package workset

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestBaseName_ClusterScope checks that the names of the Works of a ClusterWorkSet differ from those of every WorkSet
// and every other ClusterWorkSet.
func TestBaseName_ClusterScope(t *testing.T) {
	bases := map[string]types.NamespacedName{}
	for _, name := range []string{"web", "a.b", "a-b", "a.b.c", strings.Repeat("a", 253), strings.Repeat("a.", 126) + "b",
		strings.Repeat("a", 230)} {
		for _, namespace := range []string{"", "clusterworkset", strings.Repeat("n", 63)} {
			set := types.NamespacedName{Namespace: namespace, Name: name}
			base := baseName(set)
			require.Empty(t, validation.IsDNS1123Subdomain(base+"-12345"), set)
			require.NotContains(t, bases, base, set)
			bases[base] = set
			require.Equal(t, namespace == "", !strings.Contains(base, "."), base)
		}
	}
	require.Equal(t, "clusterworkset-web", baseName(types.NamespacedName{Name: "web"}))
}

// TestSetOf_ClusterScope checks which WorkSet owns a Work when a user has removed some of its labels and annotations.
func TestSetOf_ClusterScope(t *testing.T) {
	type marks = map[string]string
	for _, test := range []struct {
		reason              string
		labels, annotations marks
		want                types.NamespacedName
	}{
		{"the annotation takes precedence over the label", marks{v1alpha1.WorkSetLabel: "hash",
			v1alpha1.WorkSetNamespaceLabel: "apps"},
			marks{v1alpha1.WorkSetAnnotation: "apps/web"}, types.NamespacedName{Namespace: "apps", Name: "web"}},
		{"the annotation of a ClusterWorkSet", marks{v1alpha1.WorkSetLabel: "hash", v1alpha1.WorkSetNamespaceLabel: ""},
			marks{v1alpha1.WorkSetAnnotation: "/web"}, types.NamespacedName{Name: "web"}},
		{"the labels of a WorkSet without the annotation", marks{v1alpha1.WorkSetLabel: "web",
			v1alpha1.WorkSetNamespaceLabel: "apps"}, nil, types.NamespacedName{Namespace: "apps", Name: "web"}},
		{"the labels of a ClusterWorkSet without the annotation", marks{v1alpha1.WorkSetLabel: "web",
			v1alpha1.WorkSetNamespaceLabel: ""}, nil,
			types.NamespacedName{Name: "web"}},
		{"without a namespace label the owner is unknown", marks{v1alpha1.WorkSetLabel: "web"}, nil,
			types.NamespacedName{}},
		{"an annotation without a namespace names no ClusterWorkSet", marks{v1alpha1.WorkSetLabel: "web"},
			marks{v1alpha1.WorkSetAnnotation: "web"}, types.NamespacedName{}},
	} {
		require.Equal(t, test.want, setOf(test.labels, test.annotations), test.reason)
	}
}
