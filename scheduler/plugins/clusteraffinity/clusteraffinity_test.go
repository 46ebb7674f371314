package clusteraffinity_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

func labels(match map[string]string, expressions ...metav1.LabelSelectorRequirement) v1alpha1.ClusterSelectorTerm {
	return v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: match,
		MatchExpressions: expressions}}
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) v1alpha1.ClusterSelectorTerm {
	return labels(nil, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values})
}

func requires(terms ...v1alpha1.ClusterSelectorTerm) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: terms}}
}

func prefers(terms ...v1alpha1.PreferredTerm) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(9)), Affinity: &v1alpha1.ClusterAffinity{Preferred: terms},
	}
}

func clusters() []*scheduler.Cluster {
	return []*scheduler.Cluster{
		schedulertest.Cluster("eu-dev", schedulertest.Label("region", "eu"), schedulertest.Label("env", "dev")),
		schedulertest.Cluster("eu-prod", schedulertest.Label("region", "eu"), schedulertest.Label("env", "prod")),
		schedulertest.Cluster("none"),
		schedulertest.Cluster("us-prod", schedulertest.Label("region", "us"), schedulertest.Label("env", "prod")),
	}
}

var (
	eu      = labels(map[string]string{"region": "eu"})
	prod    = labels(map[string]string{"env": "prod"})
	euProd  = labels(map[string]string{"region": "eu", "env": "prod"})
	euOrUS  = expression("region", metav1.LabelSelectorOpIn, "us", "eu")
	notEU   = expression("region", metav1.LabelSelectorOpNotIn, "eu", "ap")
	labeled = expression("region", metav1.LabelSelectorOpExists)
	bare    = expression("region", metav1.LabelSelectorOpDoesNotExist)
)

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: clusteraffinity.Name, Factory: clusteraffinity.New(), Clusters: clusters(),
		Policies: []v1alpha1.PlacementPolicy{
			requires(eu), requires(euProd), requires(euOrUS), requires(notEU), requires(labeled), requires(bare),
			requires(euProd, bare),
			prefers(v1alpha1.PreferredTerm{Weight: 10, Term: eu}),
			prefers(v1alpha1.PreferredTerm{Weight: -10, Term: eu}),
			prefers(v1alpha1.PreferredTerm{Weight: 7, Term: eu}, v1alpha1.PreferredTerm{Weight: -3, Term: prod},
				v1alpha1.PreferredTerm{Weight: 11, Term: labeled}),
		},
	})
}

func TestRequired(t *testing.T) {
	s := schedulertest.Scheduler(t, clusteraffinity.Name, clusteraffinity.New(), "")
	for _, test := range []struct {
		reason  string
		spec    v1alpha1.PlacementPolicy
		want    []string
		message string
	}{
		{"no requirement", v1alpha1.PlacementPolicy{}, []string{"eu-dev", "eu-prod", "none", "us-prod"},
			"4 of 4 clusters chosen"},
		{"one label", requires(eu), []string{"eu-dev", "eu-prod"}, "2 of 4 clusters chosen; 2 do not match region=eu"},
		{"two labels of one term", requires(euProd), []string{"eu-prod"},
			"1 of 4 clusters chosen; 2 do not match env=prod, 1 does not match region=eu"},
		{"operator In", requires(euOrUS), []string{"eu-dev", "eu-prod", "us-prod"},
			"3 of 4 clusters chosen; 1 does not match region in (eu,us)"},
		{"operator NotIn", requires(notEU), []string{"none", "us-prod"},
			"2 of 4 clusters chosen; 2 do not match region notin (ap,eu)"},
		{"operator Exists", requires(labeled), []string{"eu-dev", "eu-prod", "us-prod"},
			"3 of 4 clusters chosen; 1 does not match region"},
		{"operator DoesNotExist", requires(bare), []string{"none"}, "1 of 4 clusters chosen; 3 do not match !region"},
		{"two terms", requires(euProd, bare), []string{"eu-prod", "none"},
			"2 of 4 clusters chosen; 2 match none of the 2 required terms"},
		{"a value that no cluster has", requires(expression("region", metav1.LabelSelectorOpIn, "mars")), nil,
			"0 of 4 clusters chosen; 4 do not match region in (mars)"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			policy, err := scheduler.NewPolicy(&test.spec)
			require.NoError(t, err)
			result, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...), &scheduler.Request{Policy: policy})
			require.NoError(t, err)
			require.ElementsMatch(t, test.want, schedulertest.Chosen(result))
			diagnosis, err := result.Diagnose(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.message, diagnosis.String())
		})
	}
}

func TestPreferred(t *testing.T) {
	s := schedulertest.Scheduler(t, clusteraffinity.Name, clusteraffinity.New(), "")
	for _, test := range []struct {
		reason string
		terms  []v1alpha1.PreferredTerm
		want   map[string]float64
	}{
		{
			"one preferred term", []v1alpha1.PreferredTerm{{Weight: 3, Term: eu}},
			map[string]float64{"eu-dev": 100, "eu-prod": 100, "none": 0, "us-prod": 0},
		},
		{
			"two preferred terms with weights", []v1alpha1.PreferredTerm{{Weight: 30, Term: eu}, {Weight: 10, Term: prod}},
			map[string]float64{"eu-dev": 75, "eu-prod": 100, "none": 0, "us-prod": 25},
		},
		{
			"negative weight", []v1alpha1.PreferredTerm{{Weight: -5, Term: prod}},
			map[string]float64{"eu-dev": 100, "eu-prod": 0, "none": 100, "us-prod": 0},
		},
		{
			"positive and negative weights", []v1alpha1.PreferredTerm{{Weight: 60, Term: eu}, {Weight: -40, Term: prod}},
			map[string]float64{"eu-dev": 100, "eu-prod": 60, "none": 40, "us-prod": 0},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			result, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...),
				schedulertest.Request(t, prefers(test.terms...)))
			require.NoError(t, err)
			got := map[string]float64{}
			for _, choice := range result.Chosen {
				got[choice.Cluster.Name] = choice.Score
			}
			require.InDeltaMapValues(t, test.want, got, 1e-9)
		})
	}
}

// TestPreferred_ScoresDoNotDependOnOtherClusters checks that the score of a cluster does not change if half of the
// fleet is removed.
func TestPreferred_ScoresDoNotDependOnOtherClusters(t *testing.T) {
	s := schedulertest.Scheduler(t, clusteraffinity.Name, clusteraffinity.New(), "")
	request := schedulertest.Request(t, prefers(v1alpha1.PreferredTerm{Weight: 30, Term: eu},
		v1alpha1.PreferredTerm{Weight: 10, Term: prod}))
	all, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...), request)
	require.NoError(t, err)
	half, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()[2:]...), request)
	require.NoError(t, err)
	require.InDelta(t, all.Chosen[2].Score, half.Chosen[0].Score, 0)
	require.Equal(t, "us-prod", half.Chosen[0].Cluster.Name)
}

// TestTerms_UnknownFields checks that a requirement that no matcher supports is an error, and not a term that always
// matches.
func TestTerms_UnknownFields(t *testing.T) {
	s := schedulertest.Scheduler(t, clusteraffinity.Name, clusteraffinity.New(), "")
	request := schedulertest.Request(t, requires(eu, v1alpha1.ClusterSelectorTerm{CEL: []string{"true"}}))
	_, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...), request)
	require.EqualError(t, err,
		"plugin ClusterAffinity, PreFilter: policy.affinity.required[1]: has no requirement that a plugin of this profile "+
			"evaluates")
}

func Example() {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{clusteraffinity.Name: clusteraffinity.New()},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: clusteraffinity.Name}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := requires(labels(map[string]string{"region": "eu"}))
	policy, err := scheduler.NewPolicy(&spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), schedulertest.Snapshot(clusters()...),
		&scheduler.Request{Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := result.Diagnose(context.Background())
	fmt.Println(diagnosis, err)
	// Output: 2 of 4 clusters chosen; 2 do not match region=eu <nil>
}
