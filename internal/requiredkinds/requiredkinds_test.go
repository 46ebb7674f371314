package requiredkinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func TestCheck(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, membershipv1alpha1.AddToScheme(scheme))
	cluster, work := membershipv1alpha1.GroupVersion.WithKind("MemberCluster"), workv1alpha1.GroupVersion.WithKind("Work")
	require.NoError(t, Check(scheme))
	require.NoError(t, Check(scheme, cluster))
	require.EqualError(t, Check(scheme, cluster, work), "the manager's scheme does not contain Work of "+
		"work.muster.dev/v1alpha1: call AddToScheme of package work/v1alpha1 before the setup")
}
