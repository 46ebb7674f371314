package placement

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestAPIs(t *testing.T) {
	apps := membershipv1alpha1.ServedAPIs{GroupVersion: "apps/v1", Kinds: []string{"DaemonSet", "Deployment"}}
	core := membershipv1alpha1.ServedAPIs{GroupVersion: "v1", Kinds: []string{"Pod"}}
	odd := membershipv1alpha1.ServedAPIs{GroupVersion: "a/b/c", Kinds: []string{"Odd"}}
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for _, tc := range []struct {
		reason string
		served []membershipv1alpha1.ServedAPIs
		want   map[schema.GroupVersionKind]bool
	}{
		{"no report is not an empty report", nil, nil},
		{"the core group has no name", []membershipv1alpha1.ServedAPIs{core}, map[schema.GroupVersionKind]bool{pod: true}},
		{"all kinds of all versions", []membershipv1alpha1.ServedAPIs{apps, core}, map[schema.GroupVersionKind]bool{
			pod: true, {Group: "apps", Version: "v1", Kind: "Deployment"}: true, {Group: "apps", Version: "v1",
				Kind: "DaemonSet"}: true,
		}},
		{"an invalid group version is ignored", []membershipv1alpha1.ServedAPIs{odd, core},
			map[schema.GroupVersionKind]bool{pod: true}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.want, apisOf(tc.served))
			require.Equal(t, tc.want, (&catalog{}).of(tc.served))
		})
	}
}

func TestCatalog(t *testing.T) {
	served := func(i int) []membershipv1alpha1.ServedAPIs {
		return []membershipv1alpha1.ServedAPIs{{GroupVersion: "v1", Kinds: []string{fmt.Sprintf("Kind%d", i)}}}
	}
	same := func(a, b map[schema.GroupVersionKind]bool) bool {
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	c := &catalog{}
	first := c.of(served(0))
	for i := range catalogSize - 1 {
		c.of(served(i + 1))
	}
	require.True(t, same(first, c.of(served(0))), "equal reports must share a map")
	c.of(served(catalogSize))
	require.True(t, same(first, c.of(served(0))), "a used entry must stay")
	require.Len(t, c.entries, catalogSize, "the size of the catalog is limited")
	for i := range catalogSize + 3 {
		require.Equal(t, apisOf(served(i)), maps.Clone(c.of(served(i))), "the result must not depend on the catalog")
	}
}
