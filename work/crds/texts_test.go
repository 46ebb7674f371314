package crds_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
)

// Specs as in files: values that Go cannot express, or that Go omits.

var refusedTexts = []struct{ reason, spec, field, want string }{
	{"misspelled manifests", `{manifest: []}`, "spec.manifests", "Required value"},
	{"manifest is null", `{manifests: [null]}`, "spec.manifests[0]", "must be of type object"},
	{"manifest is a list", `{manifests: [[]]}`, "spec.manifests[0]", "must be of type object"},
	{"empty apiVersion", `{manifests: [{apiVersion: "", kind: Namespace, metadata: {name: a}}]}`,
		"spec.manifests[0].apiVersion", "must not be empty"},
	{"empty kind", `{manifests: [{apiVersion: v1, kind: "", metadata: {name: a}}]}`, "spec.manifests[0].kind",
		"must not be empty"},
	{"selector with an empty name", `{manifests: [], manifestOptions: [{select: {name: ""}}]}`,
		"spec.manifestOptions[0].select.name", "should be at least 1 chars long"},
	{"selector with an empty namespace", `{manifests: [], manifestOptions: [{select: {namespace: ""}}]}`,
		"spec.manifestOptions[0].select.namespace", "should be at least 1 chars long"},
	{"selector with an empty kind", `{manifests: [], manifestOptions: [{select: {kind: ""}}]}`,
		"spec.manifestOptions[0].select.kind", "should be at least 1 chars long"},
	{"option without a selector", `{manifests: [], manifestOptions: [{mode: Observe}]}`,
		"spec.manifestOptions[0].select", "Required value"},
	{"empty mode", `{manifests: [], apply: {mode: ""}}`, "spec.apply.mode", "Unsupported value"},
	{"wave timeout of zero", `{manifests: [], waves: {timeoutSeconds: 0}}`, "spec.waves.timeoutSeconds",
		"should be greater than or equal to 1"},
	{"readiness rule without an expression", `{manifests: [], manifestOptions: [{select: {name: a}, readiness: {}}]}`,
		"spec.manifestOptions[0].readiness.cel", "Required value"},
	{"feedback without a path", `{manifests: [], manifestOptions: [{select: {name: a}, feedback: [{name: a}]}]}`,
		"spec.manifestOptions[0].feedback[0].jsonPath", "Required value"},
	{"executor without a namespace", `{manifests: [], executor: {name: a}}`, "spec.executor.namespace",
		"Required value"},
}

var acceptedTexts = []struct{ reason, spec string }{
	{"selector of the core group", `{manifests: [], manifestOptions: [{select: {group: ""}}]}`},
	{"empty lists of an option, and an empty field owner", `{manifests: [], manifestOptions: [{select: {name: a}, ` +
		`ignoredFields: [], feedback: []}], apply: {fieldOwner: ""}}`},
}

func text(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "{apiVersion: work.muster.dev/v1alpha1, kind: Work, metadata: {name: text, namespace: default}, spec: " +
		spec + "}"
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object), spec)
	return object
}

func TestValidation_InvalidTexts(t *testing.T) {
	c := installed(t)
	for _, test := range refusedTexts {
		err := c.Create(t.Context(), text(t, test.spec), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: API server: want an invalid error, got %v", test.reason, err)
			continue
		}
		check(t, "API server: "+test.reason, refused{field: test.field, want: test.want}, crdtest.Complaints(t, err))
	}
}

func TestValidation_ValidTexts(t *testing.T) {
	c := installed(t)
	for _, test := range acceptedTexts {
		if err := c.Create(t.Context(), text(t, test.spec), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
