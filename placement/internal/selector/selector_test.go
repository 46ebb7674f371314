package selector_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/internal/selector"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// ExampleForClusters checks that all parts of a selector must match. Package placement/override tests the details.
func ExampleForClusters() {
	europe, err := selector.ForClusters(&v1alpha1.ClusterSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
		CEL:           []string{`cluster.name != "lab"`},
	}, field.NewPath("clusters").Index(0))
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"paris", "lab"} {
		fmt.Println(name, europe.Match(&scheduler.Cluster{Name: name, Labels: map[string]string{"region": "eu"}}))
	}
	_, err = selector.ForClusters(&v1alpha1.ClusterSelector{CEL: []string{"true", "cluster."}},
		field.NewPath("clusters").Index(1))
	fmt.Println(err != nil && err.Error()[:len("clusters[1].cel[1]")] == "clusters[1].cel[1]")
	// Output:
	// paris true
	// lab false
	// true
}

func TestClusters(t *testing.T) {
	east := &scheduler.Cluster{Name: "east", Labels: map[string]string{"region": "eu"}}
	for _, test := range []struct {
		reason string
		spec   v1alpha1.ClusterSelector
		want   bool
	}{
		{"an empty selector matches", v1alpha1.ClusterSelector{}, true},
		{"an empty label selector matches", v1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{}}, true},
		{"one of the names", v1alpha1.ClusterSelector{Names: []string{"west", "east"}}, true},
		{"none of the names", v1alpha1.ClusterSelector{Names: []string{"west"}, CEL: []string{"true"}}, false},
		{"the name matches, and the expression does not", v1alpha1.ClusterSelector{Names: []string{"east"},
			CEL: []string{"true", "false"}}, false},
		{"an expression that fails", v1alpha1.ClusterSelector{CEL: []string{`cluster.labels["zone"] == "1"`}}, false},
	} {
		c, err := selector.ForClusters(&test.spec, field.NewPath("clusters"))
		require.NoError(t, err, test.reason)
		require.Equal(t, test.want, c.Match(east), test.reason)
	}
	_, err := selector.ForClusters(&v1alpha1.ClusterSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}, field.NewPath("clusters"))
	require.ErrorContains(t, err, "clusters: ")
}

func TestObject(t *testing.T) {
	web := &workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	for _, test := range []struct {
		reason    string
		selectors []v1alpha1.ObjectSelector
		want      bool
	}{
		{"no selectors match nothing", nil, false},
		{"all fields match",
			[]v1alpha1.ObjectSelector{{Group: new("apps"), Kind: "Deployment", Namespace: "shop", Name: "web"}}, true},
		{"the empty group is the core group", []v1alpha1.ObjectSelector{{Group: new("")}}, false},
		{"another kind", []v1alpha1.ObjectSelector{{Kind: "StatefulSet", Name: "web"}}, false},
		{"another namespace", []v1alpha1.ObjectSelector{{Namespace: "other"}}, false},
		{"the second selector matches", []v1alpha1.ObjectSelector{{Name: "api"}, {Kind: "Deployment"}}, true},
	} {
		require.Equal(t, test.want, selector.Object(test.selectors, web), test.reason)
	}
}
