package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestFieldPath_Matches(t *testing.T) {
	for _, test := range []struct {
		reason, path, pattern string
		want                  bool
	}{
		{"equal path", ".spec.replicas", ".spec.replicas", true},
		{"path below the pattern", ".spec.template.spec", ".spec.template", true},
		{"path above the pattern", ".spec", ".spec.replicas", false},
		{"pattern with any item", `.spec.containers[name="web"].image`, ".spec.containers[*].image", true},
		{"pattern with another field of any item", `.spec.containers[name="web"].args`, ".spec.containers[*].image", false},
		{"pattern with some of the keys", `.spec.ports[containerPort=80,protocol="TCP"]`, ".spec.ports[containerPort=80]",
			true},
		{"pattern with another key", `.spec.ports[containerPort=80,protocol="TCP"]`, ".spec.ports[containerPort=81]", false},
	} {
		path, err := v1alpha1.ParseFieldPath(test.path)
		require.NoError(t, err)
		pattern, err := v1alpha1.ParseFieldPath(test.pattern)
		require.NoError(t, err)
		require.Equal(t, test.want, path.Matches(pattern), test.reason)
	}
}
