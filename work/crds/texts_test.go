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
	{"a misspelled field must not take everything back", `{manifest: []}`, "spec.manifests", "Required value"},
	{"a manifest that a template left empty", `{manifests: [null]}`, "spec.manifests[0]", "must be of type object"},
	{"a list in a list", `{manifests: [[]]}`, "spec.manifests[0]", "must be of type object"},
	{"an API without a name", `{manifests: [{apiVersion: "", kind: Namespace, metadata: {name: a}}]}`,
		"spec.manifests[0].apiVersion", "must not be empty"},
	{"a kind without a name", `{manifests: [{apiVersion: v1, kind: "", metadata: {name: a}}]}`, "spec.manifests[0].kind",
		"must not be empty"},
	{"an empty name selects nothing, rather than all", `{manifests: [], manifestOptions: [{select: {name: ""}}]}`,
		"spec.manifestOptions[0].select.name", "should be at least 1 chars long"},
	{"nor does an empty namespace", `{manifests: [], manifestOptions: [{select: {namespace: ""}}]}`,
		"spec.manifestOptions[0].select.namespace", "should be at least 1 chars long"},
	{"nor an empty kind", `{manifests: [], manifestOptions: [{select: {kind: ""}}]}`,
		"spec.manifestOptions[0].select.kind", "should be at least 1 chars long"},
	{"an option without a selector", `{manifests: [], manifestOptions: [{mode: Observe}]}`,
		"spec.manifestOptions[0].select", "Required value"},
	{"a mode that is said must be one", `{manifests: [], apply: {mode: ""}}`, "spec.apply.mode", "Unsupported value"},
	{"no time at all", `{manifests: [], waves: {timeoutSeconds: 0}}`, "spec.waves.timeoutSeconds",
		"should be greater than or equal to 1"},
	{"a rule without an expression", `{manifests: [], manifestOptions: [{select: {name: a}, readiness: {}}]}`,
		"spec.manifestOptions[0].readiness.cel", "Required value"},
	{"a value without a path", `{manifests: [], manifestOptions: [{select: {name: a}, feedback: [{name: a}]}]}`,
		"spec.manifestOptions[0].feedback[0].jsonPath", "Required value"},
	{"a ServiceAccount of no namespace", `{manifests: [], executor: {name: a}}`, "spec.executor.namespace",
		"Required value"},
}

var acceptedTexts = []struct{ reason, spec string }{
	{"the core group has no name", `{manifests: [], manifestOptions: [{select: {group: ""}}]}`},
	{"empty lists are as good as none, as templates write them", `{manifests: [], manifestOptions: [{select: {name: a}, ` +
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

func TestAPIServerRefusesText(t *testing.T) {
	c := installed(t)
	for _, test := range refusedTexts {
		err := c.Create(t.Context(), text(t, test.spec), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to refuse it, got %v", test.reason, err)
			continue
		}
		check(t, "API server: "+test.reason, refused{field: test.field, want: test.want}, crdtest.Complaints(t, err))
	}
}

func TestAPIServerAcceptsText(t *testing.T) {
	c := installed(t)
	for _, test := range acceptedTexts {
		if err := c.Create(t.Context(), text(t, test.spec), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
