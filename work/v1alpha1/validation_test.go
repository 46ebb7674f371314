package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The rules that Validate shares with the API server are tested in package crds, by one table for both. This file tests
// the rules that only Validate has; manifest_test.go tests the rules of manifests.

func option(option v1alpha1.ManifestOption) v1alpha1.WorkSpec {
	spec := of()
	option.Select.Name = "a"
	spec.ManifestOptions = []v1alpha1.ManifestOption{{Select: v1alpha1.ManifestSelector{Name: "b"}}, option}
	return spec
}

func ignoring(path string) v1alpha1.WorkSpec {
	return option(v1alpha1.ManifestOption{IgnoredFields: []string{".spec", path}})
}

func TestValidate_BeyondTheAPIServer(t *testing.T) {
	const ignored = "spec.manifestOptions[1].ignoredFields[1]"
	long := of()
	for range 64 {
		long.ManifestOptions = append(long.ManifestOptions, v1alpha1.ManifestOption{
			Select: v1alpha1.ManifestSelector{Name: "a"}, Readiness: &v1alpha1.ReadinessRule{CEL: strings.Repeat("!", 2044) +
				"true"},
		})
	}
	for _, test := range []struct {
		reason string
		spec   v1alpha1.WorkSpec
		field  string
		want   string
	}{
		{"path without the leading dot", ignoring("spec.replicas"), ignored, "position 0: expected a field such as .spec"},
		{"path with a filter of JSONPath", ignoring(".spec.containers[?].image"), ignored,
			`position 18: expected "=" and a value behind the key`},
		{"all fields of metadata", ignoring(".metadata[*]"), ignored, "make the object and cannot be ignored"},
		{"index of the object", ignoring("[0].spec"), ignored, "begin with a field, such as .spec"},
		{"metadata.name", ignoring(".metadata.name"), ignored, "make the object and cannot be ignored"},
		{"metadata.namespace", ignoring(`.metadata["namespace"]`), ignored, "make the object and cannot be ignored"},
		{"kind", ignoring(".kind"), ignored, "make the object and cannot be ignored"},
		{"apiVersion", ignoring(".apiVersion"), ignored, "make the object and cannot be ignored"},
		{"metadata", ignoring(".metadata"), ignored, "make the object and cannot be ignored"},
		{"status", ignoring(".status"), ignored, "the status is never applied"},
		{"field of status", ignoring(".status.replicas"), ignored, "the status is never applied"},
		{"options are too long", long, "spec.manifestOptions", "must have at most 131072 bytes as JSON"},
		{"manifest is a list", of(`[]`), "spec.manifests[0]", "must be a JSON object"},
		{"manifests are too long together", of(`"` + strings.Repeat("x", v1alpha1.MaxManifestBytes) + `"`), "spec.manifests",
			"split the Work into several"},
	} {
		errs := test.spec.Validate()
		if len(errs) != 1 || errs[0].Field != test.field || !strings.Contains(errs[0].Error(), test.want) {
			t.Errorf("%s: want one error of %s with %q, got %v", test.reason, test.field, test.want, errs)
		}
	}
}

func TestValidate_IgnoredFields(t *testing.T) {
	for reason, path := range map[string]string{
		"replicas":                            ".spec.replicas",
		"all annotations":                     ".metadata.annotations",
		"one annotation":                      ".metadata.annotations.example.com/note",
		"field with the prefix metadata.name": ".metadata.nameless",
		"name below spec.metadata":            ".spec.metadata.name",
		"status below spec":                   ".spec.status",
		"key status of data":                  `.data["status"]`,
		"field of an item":                    `.spec.template.spec.containers[name="web"].image`,
	} {
		spec := ignoring(path)
		if errs := spec.Validate(); len(errs) > 0 {
			t.Errorf("%s: %s: %v", reason, path, errs)
		}
	}
}

// TestValidate_ReturnsAllErrors checks that Validate returns all errors at once, those of manifests first, in a stable
// order.
func TestValidate_ReturnsAllErrors(t *testing.T) {
	spec := option(v1alpha1.ManifestOption{Mode: "No", Wave: new(int32(1000)),
		Feedback: []v1alpha1.FeedbackRule{{Name: "a b"}}, IgnoredFields: []string{".kind"}})
	labels, texts := "", ""
	for i := range 8 {
		labels += fmt.Sprintf(`, "wrong %d": ""`, i)
		texts += fmt.Sprintf(`, "t%d": 1`, i)
	}
	spec.Manifests = of(
		`{"kind": "a.b", "metadata": {"generateName": "a-"}}`,
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "labels": {"a": "b"`+labels+
			`}}, "stringData": {"a": "b"`+texts+`}}`,
	).Manifests
	spec.Apply.Drift, spec.Waves.TimeoutSeconds, spec.Delete.Action = "No", -1, "No"
	spec.Executor, spec.TTLSecondsAfterCompletion = &v1alpha1.Executor{}, new(int32(-1))

	var fields []string
	for _, e := range spec.Validate() {
		fields = append(fields, e.Field)
	}
	want := []string{"spec.manifests[0].apiVersion", "spec.manifests[0].kind", "spec.manifests[0].metadata.name",
		"spec.manifests[0].metadata.generateName"}
	for range 8 {
		want = append(want, "spec.manifests[1].metadata.labels")
	}
	for i := range 8 {
		want = append(want, fmt.Sprintf("spec.manifests[1].stringData[t%d]", i))
	}
	want = append(want,
		"spec.apply.drift",
		"spec.manifestOptions[1].mode", "spec.manifestOptions[1].ignoredFields[0]",
		"spec.manifestOptions[1].feedback[0].name", "spec.manifestOptions[1].feedback[0].jsonPath",
		"spec.manifestOptions[1].wave",
		"spec.waves.timeoutSeconds", "spec.delete.action", "spec.executor.namespace", "spec.executor.name",
		"spec.ttlSecondsAfterCompletion",
	)
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	text := spec.Validate().ToAggregate().Error()
	for range 20 {
		if again := spec.Validate().ToAggregate().Error(); again != text {
			t.Fatalf("the order of the errors is not stable:\n%s\n%s", text, again)
		}
	}
}
