package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestKindsOf(t *testing.T) {
	list := func(groupVersion string, pairs ...string) *metav1.APIResourceList {
		l := &metav1.APIResourceList{GroupVersion: groupVersion}
		for i := 0; i < len(pairs); i += 2 {
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: pairs[i], Kind: pairs[i+1]})
		}
		return l
	}
	kinds := func(groupVersion string, names ...string) v1alpha1.ServedAPIs {
		return v1alpha1.ServedAPIs{GroupVersion: groupVersion, Kinds: names}
	}
	failed := map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("no answer")}
	many := make([]*metav1.APIResourceList, maxGroupVersions+1)
	for i := range many {
		many[i] = list(fmt.Sprintf("g%d.example.com/v1", i), "things", "Thing")
	}
	largeGroup := list("v1")
	for i := range maxKinds + 1 {
		largeGroup.APIResources = append(largeGroup.APIResources,
			metav1.APIResource{Name: "things", Kind: fmt.Sprintf("Kind%d", i)})
	}
	for _, tc := range []struct {
		reason  string
		lists   []*metav1.APIResourceList
		before  []v1alpha1.ServedAPIs
		failed  map[schema.GroupVersion]error
		want    []v1alpha1.ServedAPIs
		problem string
	}{
		{"kinds are sorted, without duplicates and subresources",
			[]*metav1.APIResourceList{list("v1", "pods", "Pod", "pods/eviction", "Eviction", "bindings", "Binding"),
				list("apps/v1", "deployments", "Deployment", "others", "Deployment")},
			nil, nil, []v1alpha1.ServedAPIs{kinds("apps/v1", "Deployment"), kinds("v1", "Binding", "Pod")}, ""},
		{"an unavailable API group keeps its former kinds", []*metav1.APIResourceList{list("v1", "pods", "Pod")},
			[]v1alpha1.ServedAPIs{kinds("metrics.k8s.io/v1beta1", "PodMetrics"), kinds("gone.example.com/v1", "Gone")}, failed,
			[]v1alpha1.ServedAPIs{kinds("metrics.k8s.io/v1beta1", "PodMetrics"), kinds("v1", "Pod")}, ""},
		{"an unavailable API group without former kinds", []*metav1.APIResourceList{list("v1", "pods", "Pod")}, nil, failed,
			[]v1alpha1.ServedAPIs{kinds("v1", "Pod")}, ""},
		{"kinds with invalid names are omitted",
			[]*metav1.APIResourceList{list("v1", "pods", "Pod", "longs", strings.Repeat("L", 64), "nothings", "")}, nil, nil,
			[]v1alpha1.ServedAPIs{kinds("v1", "Pod")}, ""},
		{"too many group versions", many, nil, nil, nil, "the member serves 513 versions of API groups, " +
			"and the limit of a Membership is 512"},
		{"too many kinds in a group version", []*metav1.APIResourceList{largeGroup}, nil, nil, nil,
			"the member serves 513 kinds of v1, and the limit of a Membership is 512"},
		{"no APIs", nil, nil, nil, nil, "the member reports that it serves no APIs"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := kindsOf(tc.lists, tc.before, tc.failed)
			if tc.problem != "" {
				require.EqualError(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
