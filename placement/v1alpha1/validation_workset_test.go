package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestValidateWorkSet_AllErrorsInOrder tests that Validate returns the errors of all parts in the order of the fields,
// with their paths in the WorkSet. Package placement/crds tests the individual rules, and that the API server has the
// same rules.
func TestValidateWorkSet_AllErrorsInOrder(t *testing.T) {
	var spec v1alpha1.WorkSetSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
placements: [{name: a}, {name: a}]
resources: [{kind: "", labelSelector: {matchLabels: {two words: a}}}]
manifests:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
- {}
- kind: ConfigMap
overrides: {rules: [{}]}
replicas: {strategy: "", objects: [{}]}
work:
  apply: {mode: a}
  manifestOptions: [{select: {}}]
  waves: {timeoutSeconds: -1}
  delete: {action: a}
  executor: {namespace: a, name: ""}
rollout: {type: a}
approvals: [{revision: "", stage: "", gate: ""}]
revisionHistoryLimit: 33
`), &spec))
	before := spec.DeepCopy()
	var got []string
	for _, err := range spec.Validate() {
		got = append(got, err.Field)
	}
	want := []string{
		"spec.placements[1]", "spec.resources[0].kind", "spec.resources[0].labelSelector.matchLabels",
		"spec.manifests[1]", "spec.manifests[2]", "spec.manifests[3].apiVersion", "spec.manifests[3].kind",
		"spec.manifests[3].metadata.name",
		"spec.manifests[4].apiVersion", "spec.manifests[4].metadata.name",
		"spec.overrides.rules[0]", "spec.replicas.strategy", "spec.replicas.objects[0]",
		"spec.work.apply.mode", "spec.work.manifestOptions[0].select", "spec.work.waves.timeoutSeconds",
		"spec.work.delete.action", "spec.work.executor.name",
		"spec.rollout.type", "spec.approvals[0].revision", "spec.approvals[0].stage", "spec.approvals[0].gate",
		"spec.revisionHistoryLimit",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(before, &spec); diff != "" {
		t.Errorf("Validate must not change the spec (-before +after)\n%s", diff)
	}
}

// TestValidateWorkSet_Empty tests that the zero value has only the errors for its empty required fields.
func TestValidateWorkSet_Empty(t *testing.T) {
	var spec v1alpha1.WorkSetSpec
	errs := spec.Validate()
	require.Len(t, errs, 2)
	require.ErrorContains(t, errs[0], "spec: Invalid value: resources or manifests is required")
	require.ErrorContains(t, errs[1], "spec.placements: Required value: name the placements")
}

// TestValidateWorkSet_InvalidManifest tests that a manifest with invalid JSON is reported, and does not suppress other
// errors.
func TestValidateWorkSet_InvalidManifest(t *testing.T) {
	spec := v1alpha1.WorkSetSpec{
		Placements: []v1alpha1.PlacementReference{{Name: "a"}},
		Manifests: []workv1alpha1.Manifest{
			{RawExtension: runtime.RawExtension{Raw: []byte("{")}},
			{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1"}`)}},
		},
	}
	errs := spec.Validate()
	require.Len(t, errs, 3)
	require.Equal(t, "spec.manifests[0]", errs[0].Field)
	require.Equal(t, "spec.manifests[1].kind", errs[1].Field)
}
