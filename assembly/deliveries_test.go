package assembly

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
)

type removedOnRequest string

func (r removedOnRequest) LastRemoval(_ context.Context, cluster string) (*placement.Removal, error) {
	if cluster == string(r) {
		return &placement.Removal{}, nil
	}
	return nil, nil
}

// TestNamespaces_ClusterOf checks to which member a namespace belongs.
func TestNamespaces_ClusterOf(t *testing.T) {
	long := strings.Repeat("long-", 12) + "name"
	c := fake.NewClientBuilder().WithScheme(mustertest.Scheme(membershipv1alpha1.AddToScheme)).WithObjects(
		&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
		&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: long}},
	).Build()
	find := namespaces{reader: c, removed: removedOnRequest("left"), prefix: "fleet-"}
	for namespace, want := range map[string]string{
		"fleet-east":                            "east",
		membership.NamespaceFor("fleet-", long): long,
		"fleet-west":                            "west", // A restore has not created its MemberCluster yet.
		"fleet-left":                            "",
		"fleet-":                                "",
		"shop":                                  "",
	} {
		got, err := find.clusterOf(t.Context(), namespace)
		require.NoError(t, err)
		require.Equal(t, want, got, namespace)
	}
}
