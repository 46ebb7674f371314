package bundle

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func TestHashOptions(t *testing.T) {
	base := func() *workv1alpha1.WorkSpec {
		return &workv1alpha1.WorkSpec{Apply: workv1alpha1.ApplyPolicy{FieldOwner: "shop"}}
	}
	for _, test := range []struct {
		reason string
		change func(*workv1alpha1.WorkSpec)
		same   bool
	}{
		{"manifests are not options",
			func(s *workv1alpha1.WorkSpec) { s.Manifests = make([]workv1alpha1.Manifest, 1) }, true},
		{"explicit default values", func(s *workv1alpha1.WorkSpec) {
			s.Apply.Drift, s.Waves.TimeoutSeconds = workv1alpha1.DriftCorrect, 600
		}, true},
		{"another mode", func(s *workv1alpha1.WorkSpec) { s.Apply.Mode = workv1alpha1.Observe }, false},
		{"another takeover", func(s *workv1alpha1.WorkSpec) { s.Apply.Takeover = workv1alpha1.TakeoverAlways }, false},
		{"another drift", func(s *workv1alpha1.WorkSpec) { s.Apply.Drift = workv1alpha1.DriftReport }, false},
		{"another field owner", func(s *workv1alpha1.WorkSpec) { s.Apply.FieldOwner = "x" }, false},
		{"an option for some manifests", func(s *workv1alpha1.WorkSpec) {
			s.ManifestOptions = make([]workv1alpha1.ManifestOption, 1)
		}, false},
		{"another timeout of waves", func(s *workv1alpha1.WorkSpec) { s.Waves.TimeoutSeconds = 601 }, false},
		{"another delete action", func(s *workv1alpha1.WorkSpec) { s.Delete.Action = workv1alpha1.OrphanObject }, false},
		{"another deletion propagation", func(s *workv1alpha1.WorkSpec) {
			s.Delete.Propagation = metav1.DeletePropagationBackground
		}, false},
		{"an executor", func(s *workv1alpha1.WorkSpec) { s.Executor = &workv1alpha1.Executor{} }, false},
		{"a TTL after completion", func(s *workv1alpha1.WorkSpec) { s.TTLSecondsAfterCompletion = new(int32) }, false},
		{"suspended", func(s *workv1alpha1.WorkSpec) { s.Suspend = true }, false},
	} {
		changed := base()
		test.change(changed)
		before := changed.DeepCopy()
		require.Equal(t, test.same, HashOptions(base()) == HashOptions(changed), test.reason)
		require.Equal(t, before, changed, "%s: HashOptions must not change the spec", test.reason)
	}
}

// TestHashOptionsKnowsAllDefaults checks that a Work in which the API server has set all defaults is treated as
// unchanged.
func TestHashOptionsKnowsAllDefaults(t *testing.T) {
	text, err := crds.Hub.ReadFile("work.muster.dev_works.yaml")
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(text, crd))
	for _, work := range []string{
		`{"spec": {}}`,
		`{"spec": {"manifestOptions": [{"select": {"kind": "Job"}, "readiness": {"cel": "true"}, ` +
			`"feedback": [{"name": "a", "jsonPath": ".b"}]}], "executor": {"name": "x"}}}`,
	} {
		withDefaults := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(work), &withDefaults))
		fill(t, withDefaults, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		stored, err := json.Marshal(withDefaults)
		require.NoError(t, err)
		defaulted, original := &workv1alpha1.Work{}, &workv1alpha1.Work{}
		require.NoError(t, json.Unmarshal(stored, defaulted))
		require.NoError(t, json.Unmarshal([]byte(work), original))
		require.NotEqual(t, original.Spec, defaulted.Spec, "the schema has no defaults")
		require.Equal(t, HashOptions(&original.Spec), HashOptions(&defaulted.Spec), "%s: %s", work, stored)
	}
}

// fill sets defaults, as the API server does.
func fill(t *testing.T, value any, schema *apiextensionsv1.JSONSchemaProps) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			fill(t, item, schema.Items.Schema)
		}
	case map[string]any:
		for name, property := range schema.Properties {
			if _, exists := value[name]; !exists && property.Default != nil {
				var decoded any
				require.NoError(t, json.Unmarshal(property.Default.Raw, &decoded))
				value[name] = decoded
			}
			if child, exists := value[name]; exists {
				fill(t, child, &property)
			}
		}
	}
}

func TestProcessed(t *testing.T) {
	type conditions = []metav1.Condition
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation}
	}
	for _, test := range []struct {
		reason     string
		observed   int64
		conditions conditions
		want       bool
	}{
		{"the Work was not observed", 0, nil, false},
		{"no conditions", 2, nil, false},
		{"Applied is True", 2, conditions{condition("Applied", "True", 2)}, true},
		{"Applied is False", 2, conditions{condition("Applied", "False", 2), condition("Available", "True", 2)}, false},
		{"Applied is False and Degraded is True",
			2, conditions{condition("Applied", "False", 2), condition("Degraded", "True", 2)}, true},
		{"both conditions are of an older generation",
			1, conditions{condition("Applied", "True", 1), condition("Degraded", "True", 1)}, false},
		{"only Degraded is of the current generation",
			2, conditions{condition("Applied", "True", 1), condition("Degraded", "False", 2)}, false},
		{"Applied has no observed generation", 2, conditions{condition("Applied", "True", 0)}, true},
		{"Applied is Unknown", 2, conditions{condition("Applied", "Unknown", 2)}, false},
	} {
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status:     workv1alpha1.WorkStatus{ObservedGeneration: test.observed, Conditions: test.conditions},
		}
		require.Equal(t, test.want, Processed(work), test.reason)
	}
}
