package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Validate terminates for every manifest, does not modify it, returns the same result each time, and rejects a manifest
// that is not an object.
func FuzzValidateTemplate(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${A}"},"data":{"a":"$$${B}$${","${":"${C"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"addon.muster.dev/pre-delete":"true",` +
			`"addon.muster.dev/scope":"${A}"}}}`,
		`[["${}"]]`, `{"a":{"b":[{"${A}":"${A}"}]}}`, `"${A}"`, `null`, `{`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		spec := v1alpha1.AddonTemplateSpec{
			Manifests: []v1alpha1.TemplateManifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}},
		}
		before := spec.DeepCopy()
		errs := spec.Validate()
		if diff := cmp.Diff(before, &spec); diff != "" {
			t.Errorf("Validate changes the spec (-before +after)\n%s", diff)
		}
		if diff := cmp.Diff(messages(errs), messages(spec.Validate())); diff != "" {
			t.Errorf("Validate returns different errors for the same spec\n%s", diff)
		}
		if object := map[string]any(nil); len(errs) == 0 && (json.Unmarshal([]byte(raw), &object) != nil || object == nil) {
			t.Error("want an error for a manifest that is not an object, got none")
		}
		for _, err := range errs {
			if !strings.HasPrefix(err.Field, "spec") {
				t.Errorf("want an error for a field of the spec, got %q", err.Field)
			}
		}
	})
}

func messages(errs field.ErrorList) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
