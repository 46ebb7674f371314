package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestLabelValue(t *testing.T) {
	for _, test := range []struct{ reason, name, want string }{
		{"a short name", "web", "web"},
		{"a name of 63 letters", strings.Repeat("a", 63), strings.Repeat("a", 63)},
		{"a longer name is hashed, and the hash must not change between releases", strings.Repeat("a", 64),
			"ffe054fe7ae0cb6dc65c3af9b61d5209"},
	} {
		require.Equal(t, test.want, v1alpha1.LabelValue(test.name), test.reason)
	}
	require.Empty(t, validation.IsValidLabelValue(v1alpha1.LabelValue(strings.Repeat("a.", 126)+"a")))
}
