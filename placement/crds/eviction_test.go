package crds_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestDisruptionBudget checks that the API server and DisruptionBudget.Validate accept and reject the same budgets.
func TestDisruptionBudget(t *testing.T) {
	c := installed(t)
	share := func(value string) *intstr.IntOrString { return new(intstr.Parse(value)) }
	for _, test := range []struct {
		reason string
		budget v1alpha1.DisruptionBudget
		field  string // empty: the budget is valid
	}{
		{"minAvailable as a number", v1alpha1.DisruptionBudget{MinAvailable: share("2")}, ""},
		{"maxUnavailable as a percentage", v1alpha1.DisruptionBudget{MaxUnavailable: share("25%")}, ""},
		{"minAvailable of 0", v1alpha1.DisruptionBudget{MinAvailable: share("0")}, ""},
		{"maxUnavailable of 0%", v1alpha1.DisruptionBudget{MaxUnavailable: share("0%")}, ""},
		{"minAvailable of 100%", v1alpha1.DisruptionBudget{MinAvailable: share("100%")}, ""},
		{"neither minAvailable nor maxUnavailable", v1alpha1.DisruptionBudget{}, "spec.disruptionBudget"},
		{"both minAvailable and maxUnavailable", v1alpha1.DisruptionBudget{MinAvailable: share("1"),
			MaxUnavailable: share("1")},
			"spec.disruptionBudget"},
		{"a negative number", v1alpha1.DisruptionBudget{MinAvailable: share("-1")}, "spec.disruptionBudget.minAvailable"},
		{"a percentage above 100%", v1alpha1.DisruptionBudget{MaxUnavailable: share("101%")},
			"spec.disruptionBudget.maxUnavailable"},
		{"a value that is not a number", v1alpha1.DisruptionBudget{MaxUnavailable: share("some")},
			"spec.disruptionBudget.maxUnavailable"},
		{"a fraction of a percent", v1alpha1.DisruptionBudget{MinAvailable: share("0.5%")},
			"spec.disruptionBudget.minAvailable"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			object := placement("budget", v1alpha1.PlacementPolicy{})
			object.Spec.DisruptionBudget = &test.budget
			errs := test.budget.Validate(field.NewPath("spec", "disruptionBudget"))
			err := c.Create(t.Context(), object, client.DryRunAll)
			if test.field == "" {
				require.Empty(t, errs)
				require.NoError(t, err)
				return
			}
			require.Len(t, errs, 1)
			require.Equal(t, test.field, errs[0].Field)
			require.ErrorContains(t, err, test.field+":")
		})
	}
}

func TestPlacement_ClustersPerDecisionGroup(t *testing.T) {
	c := installed(t)
	for value, valid := range map[string]bool{
		"1": true, "500": true, "1%": true, "100%": true,
		"0": false, "-1": false, "0%": false, "101%": false, "0.5%": false, "some": false,
	} {
		t.Run(value, func(t *testing.T) {
			object := placement("groups", v1alpha1.PlacementPolicy{})
			object.Spec.ClustersPerDecisionGroup = new(intstr.Parse(value))
			err := c.Create(t.Context(), object, client.DryRunAll)
			if valid {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "spec.clustersPerDecisionGroup:")
			}
		})
	}
}

func eviction(name string, spec v1alpha1.PlacementEvictionSpec) *v1alpha1.PlacementEviction {
	return &v1alpha1.PlacementEviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func TestPlacementEviction(t *testing.T) {
	c := installed(t)
	for _, test := range []struct {
		reason string
		spec   v1alpha1.PlacementEvictionSpec
		want   string // empty: the eviction is valid
	}{
		{"the required fields", v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "east"}, ""},
		{"deletion immediately after the execution", v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "east",
			TTLSecondsAfterExecution: new(int32(0))}, ""},
		{"deletion a year after the execution", v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "east",
			TTLSecondsAfterExecution: new(int32(31536000))}, ""},
		{"no cluster", v1alpha1.PlacementEvictionSpec{Placement: "web"}, "spec.cluster"},
		{"no placement", v1alpha1.PlacementEvictionSpec{Cluster: "east"}, "spec.placement"},
		{"a ClusterPlacement", v1alpha1.PlacementEvictionSpec{ClusterPlacement: "web", Cluster: "east"}, ""},
		{"both placement and clusterPlacement", v1alpha1.PlacementEvictionSpec{Placement: "web", ClusterPlacement: "web",
			Cluster: "east"},
			"exactly one of placement and clusterPlacement"},
		{"a cluster name that is too long", v1alpha1.PlacementEvictionSpec{Placement: "web",
			Cluster: strings.Repeat("a", 64)},
			"spec.cluster"},
		{"a negative ttlSecondsAfterExecution", v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "east",
			TTLSecondsAfterExecution: new(int32(-1))}, "ttlSecondsAfterExecution must be from 0"},
		{"a ttlSecondsAfterExecution of more than a year", v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "east",
			TTLSecondsAfterExecution: new(int32(31536001))}, "leave it out to keep the eviction"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			err := c.Create(t.Context(), eviction("web-east", test.spec), client.DryRunAll)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsInvalid(err), err)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestPlacementEviction_Immutable checks that the spec of an eviction cannot be changed, and that its columns show its
// state.
func TestPlacementEviction_Immutable(t *testing.T) {
	c := installed(t)
	object := eviction("columns", v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "east"})
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	for name, change := range map[string]func(*v1alpha1.PlacementEvictionSpec){
		"the placement":    func(s *v1alpha1.PlacementEvictionSpec) { s.Placement = "other" },
		"the cluster":      func(s *v1alpha1.PlacementEvictionSpec) { s.Cluster = "west" },
		"the time to live": func(s *v1alpha1.PlacementEvictionSpec) { s.TTLSecondsAfterExecution = new(int32(1)) },
	} {
		changed := object.DeepCopy()
		change(&changed.Spec)
		err := c.Update(t.Context(), changed)
		require.True(t, apierrors.IsInvalid(err), "%s: want Invalid, got %v", name, err)
		require.ErrorContains(t, err, "an eviction cannot be changed: delete it, and create another", name)
	}
	object.Labels = map[string]string{"mine": "yes"}
	require.NoError(t, c.Update(t.Context(), object), "labels may change")
	object.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionExecuted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBudgetExhausted,
		LastTransitionTime: metav1.Now(),
	}}
	require.NoError(t, c.Status().Update(t.Context(), object))
	order, cells := crdtest.Columns(t, plane.ForTest(t).Config(),
		"/apis/placement.muster.dev/v1alpha1/namespaces/default/placementevictions/columns")
	require.Equal(t, []string{"Name", "Placement", "ClusterPlacement", "Cluster", "Executed", "Reason", "Age"}, order)
	delete(cells, "Age")
	want := map[string]any{"Name": "columns", "Placement": "web", "Cluster": "east", "Executed": "False",
		"ClusterPlacement": nil, "Reason": "BudgetExhausted"}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
