package version_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/internal/version"
)

func TestVersions(t *testing.T) {
	for _, test := range []struct {
		reason        string
		came, known   string
		newer, behind bool
	}{
		{"a later one", "10", "9", true, false},
		{"the same", "9", "9", false, false},
		{"an earlier one", "9", "10", false, true},
		{"of a server with versions of its own the last that came counts, and no cache is waited for", "x", "y", true, false},
	} {
		came, known := &metav1.ObjectMeta{ResourceVersion: test.came}, &metav1.ObjectMeta{ResourceVersion: test.known}
		require.Equal(t, test.newer, version.Newer(came, known), test.reason)
		require.Equal(t, test.behind, version.Behind(came, known), test.reason)
	}
}
