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
		{"manifests are no options", func(s *workv1alpha1.WorkSpec) { s.Manifests = make([]workv1alpha1.Manifest, 1) }, true},
		{"a default is the same said or not", func(s *workv1alpha1.WorkSpec) {
			s.Apply.Drift, s.Waves.TimeoutSeconds = workv1alpha1.DriftCorrect, 600
		}, true},
		{"another mode", func(s *workv1alpha1.WorkSpec) { s.Apply.Mode = workv1alpha1.Observe }, false},
		{"another takeover", func(s *workv1alpha1.WorkSpec) { s.Apply.Takeover = workv1alpha1.TakeoverAlways }, false},
		{"another drift", func(s *workv1alpha1.WorkSpec) { s.Apply.Drift = workv1alpha1.DriftReport }, false},
		{"another owner", func(s *workv1alpha1.WorkSpec) { s.Apply.FieldOwner = "x" }, false},
		{"an option for some", func(s *workv1alpha1.WorkSpec) {
			s.ManifestOptions = make([]workv1alpha1.ManifestOption, 1)
		}, false},
		{"another time", func(s *workv1alpha1.WorkSpec) { s.Waves.TimeoutSeconds = 601 }, false},
		{"another end", func(s *workv1alpha1.WorkSpec) { s.Delete.Action = workv1alpha1.OrphanObject }, false},
		{"another way there", func(s *workv1alpha1.WorkSpec) {
			s.Delete.Propagation = metav1.DeletePropagationBackground
		}, false},
		{"somebody else applies", func(s *workv1alpha1.WorkSpec) { s.Executor = &workv1alpha1.Executor{} }, false},
		{"a life of some time", func(s *workv1alpha1.WorkSpec) { s.TTLSecondsAfterCompletion = new(int32) }, false},
		{"a pause", func(s *workv1alpha1.WorkSpec) { s.Suspend = true }, false},
	} {
		changed := base()
		test.change(changed)
		before := changed.DeepCopy()
		require.Equal(t, test.same, HashOptions(base()) == HashOptions(changed), test.reason)
		require.Equal(t, before, changed, "%s: it is only read", test.reason)
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
		said := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(work), &said))
		fill(t, said, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		stored, err := json.Marshal(said)
		require.NoError(t, err)
		is, was := &workv1alpha1.Work{}, &workv1alpha1.Work{}
		require.NoError(t, json.Unmarshal(stored, is))
		require.NoError(t, json.Unmarshal([]byte(work), was))
		require.NotEqual(t, was.Spec, is.Spec, "there are defaults")
		require.Equal(t, HashOptions(&was.Spec), HashOptions(&is.Spec), "%s: %s", work, stored)
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
			if _, there := value[name]; !there && property.Default != nil {
				var filling any
				require.NoError(t, json.Unmarshal(property.Default.Raw, &filling))
				value[name] = filling
			}
			if child, there := value[name]; there {
				fill(t, child, &property)
			}
		}
	}
}

func TestObserved(t *testing.T) {
	type conditions = []metav1.Condition
	is := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation}
	}
	for _, test := range []struct {
		reason     string
		observed   int64
		conditions conditions
		want       bool
	}{
		{"nobody has looked at it", 0, nil, false},
		{"nobody has tried", 2, nil, false},
		{"it is applied", 2, conditions{is("Applied", "True", 2)}, true},
		{"it is not", 2, conditions{is("Applied", "False", 2), is("Available", "True", 2)}, false},
		{"it is in trouble", 2, conditions{is("Applied", "False", 2), is("Degraded", "True", 2)}, true},
		{"it was so before the last change", 1, conditions{is("Applied", "True", 1), is("Degraded", "True", 1)}, false},
		{"that alone is known", 2, conditions{is("Applied", "True", 1), is("Degraded", "False", 2)}, false},
		{"nobody knows of what generation it is said", 2, conditions{is("Applied", "True", 0)}, true},
		{"nobody knows", 2, conditions{is("Applied", "Unknown", 2)}, false},
	} {
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status:     workv1alpha1.WorkStatus{ObservedGeneration: test.observed, Conditions: test.conditions},
		}
		require.Equal(t, test.want, Processed(work), test.reason)
	}
}
