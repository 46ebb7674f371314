package crds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Cases that the API server and WorkSetSpec.Validate must both reject, or both accept.

// rule is an invalid text with the expected message, and the most similar valid text. Each replaces fields of a minimal
// spec.
type rule struct {
	reason       string
	wrong, right string
	field        string // below spec; Validate may name a field within this field
	want         string // part of both messages; empty if the API server reports only a pattern
}

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`

// workSet returns a minimal WorkSet in which some fields of the spec are replaced.
func workSet(t *testing.T, fields string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t,
		yaml.Unmarshal(
			[]byte(`{apiVersion: placement.muster.dev/v1alpha1, kind: WorkSet, metadata: {name: web, namespace: default},
		spec: {placements: [{name: fleet}], manifests: [`+configMap+`]}}`), &object.Object))
	var other map[string]any
	require.NoError(t, yaml.Unmarshal([]byte("{"+fields+"}"), &other), fields)
	spec := object.Object["spec"].(map[string]any)
	maps.Copy(spec, other)
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	return object
}

// decoded returns a WorkSet as a Go program decodes it. The program must not lose data of the YAML.
func decoded(t *testing.T, object *unstructured.Unstructured) *v1alpha1.WorkSet {
	t.Helper()
	set := &v1alpha1.WorkSet{}
	text, err := object.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, set))
	return set
}

func validated(spec *v1alpha1.WorkSetSpec) []crdtest.Complaint {
	return crdtest.Validated(spec.Validate())
}

// list returns a list in YAML, with entries that contain a number.
func list(n int, entry string) string {
	return "[" + strings.Join(times(n, func(i int) string {
		return strings.ReplaceAll(entry, "#", fmt.Sprint(i))
	}), ", ") + "]"
}

// as returns n letters a.
func as(n int) string { return strings.Repeat("a", n) }

func workSetRules() []rule {
	return slices.Concat(specRules, overrideRules(), replicaRules(), workRules, rolloutRules)
}

// TestValidateWorkSet checks that each rule rejects its invalid text once, at the invalid field, and accepts the valid
// one.
func TestValidateWorkSet(t *testing.T) {
	for _, test := range workSetRules() {
		got := validated(&decoded(t, workSet(t, test.wrong)).Spec)
		want := crdtest.Complaint{Field: strings.TrimSuffix("spec."+test.field, "."), Message: test.want}
		crdtest.One(t, test.reason, want, got)
		if got := validated(&decoded(t, workSet(t, test.right)).Spec); len(got) > 0 {
			t.Errorf("%s, valid text: unexpected errors: %+v", test.reason, got)
		}
	}
}

// TestAPIServer_WorkSetRules checks the cases of TestValidateWorkSet with the API server, and that each rule of the
// definition is violated by at least one test.
func TestAPIServer_WorkSetRules(t *testing.T) {
	c := installed(t)
	var refused []crdtest.Complaint
	for _, test := range workSetRules() {
		object := workSet(t, test.wrong)
		ours := validated(&decoded(t, object).Spec)
		err := c.Create(t.Context(), object, client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to reject the object, got %v", test.reason, err)
			continue
		}
		// A field for a number or a string can violate the rules of both.
		got := slices.CompactFunc(crdtest.Complaints(t, err), func(a, b crdtest.Complaint) bool { return a.Field == b.Field })
		want := strings.TrimSuffix("spec."+test.field, ".")
		if len(got) != 1 || got[0].Field != want || !strings.Contains(got[0].Message, test.want) {
			t.Errorf("%s: want one error of %s with %q, got %+v", test.reason, want, test.want, got)
		} else if len(ours) > 0 && got[0].Kind != ours[0].Kind {
			t.Errorf("%s: error of type %s from the API server, of type %s from Validate", test.reason, got[0].Kind,
				ours[0].Kind)
		}
		refused = append(refused, got...)
		checkAccepted(t, c, test.reason+", valid text", test.right)
	}
	for _, rule := range crdtest.Rules(t, c, "worksets.placement.muster.dev") {
		_, tested := missing[strings.ReplaceAll(strings.TrimPrefix(rule.Field, "spec."), "[]", "[0]")]
		if !tested && !rule.BrokenBy(refused) {
			t.Errorf("no case violates this rule: %+v", rule)
		}
	}
}

// checkAccepted checks that the API server accepts a WorkSet, and that Validate accepts the stored result.
func checkAccepted(t *testing.T, c client.Client, reason, fields string) {
	t.Helper()
	object := workSet(t, fields)
	if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Errorf("%s: API server: unexpected error: %v", reason, err)
	} else if ours := validated(&decoded(t, object).Spec); len(ours) > 0 {
		t.Errorf("%s, with defaults: Validate: unexpected errors: %+v", reason, ours)
	}
}

// missing contains required fields and empty texts that a Go program omits, so that only the API server can reject
// them.
var missing = map[string]string{
	"placements":                               `placements: null`,
	"placements[0].name":                       `placements: [{}]`,
	"resources[0].kind":                        `resources: [{name: a}]`,
	"overrides.rules[0].jsonPatch[0].op":       `overrides: {rules: [{jsonPatch: [{path: /a}]}]}`,
	"overrides.rules[0].jsonPatch[0].path":     `overrides: {rules: [{jsonPatch: [{op: remove}]}]}`,
	"replicas.strategy":                        `replicas: {}`,
	"replicas.weights[0].clusters":             `replicas: {strategy: StaticWeight, weights: [{weight: 1}]}`,
	"replicas.weights[0].weight":               `replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}}]}`,
	"work.executor.name":                       `work: {executor: {namespace: a}}`,
	"work.executor.namespace":                  `work: {executor: {name: a}}`,
	"work.manifestOptions[0].select":           `work: {manifestOptions: [{mode: Observe}]}`,
	"work.manifestOptions[0].select.kind":      `work: {manifestOptions: [{select: {kind: ""}}]}`,
	"work.manifestOptions[0].select.name":      `work: {manifestOptions: [{select: {name: ""}}]}`,
	"work.manifestOptions[0].select.namespace": `work: {manifestOptions: [{select: {namespace: ""}}]}`,
	"work.manifestOptions[0].readiness.cel":    `work: {manifestOptions: [{select: {kind: A}, readiness: {}}]}`,
	"work.manifestOptions[0].feedback[0].name": `work: {manifestOptions: [{select: {kind: A}, ` +
		`feedback: [{jsonPath: .a}]}]}`,
	"work.waves.timeoutSeconds":       `work: {waves: {timeoutSeconds: 0}}`,
	"rollout.stages[0].name":          `rollout: {type: Stages, stages: [{}]}`,
	"rollout.progressDeadlineSeconds": `rollout: {progressDeadlineSeconds: 0}`,
	"approvals[0].revision":           `approvals: [{stage: a, gate: Before}]`,
	"approvals[0].stage":              `approvals: [{revision: a, gate: Before}]`,
	"approvals[0].gate":               `approvals: [{revision: a, stage: a}]`,
}

func TestWorkSet_RequiredFields(t *testing.T) {
	c := installed(t)
	for field, wrong := range missing {
		err := c.Create(t.Context(), workSet(t, wrong), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to reject the object, got %v", wrong, err)
		} else if theirs := crdtest.Complaints(t, err); len(theirs) != 1 || theirs[0].Field != "spec."+field {
			t.Errorf("%s: want one error of %s, got %+v", wrong, field, theirs)
		}
	}
	object := workSet(t, "")
	delete(object.Object, "spec")
	require.ErrorContains(t, c.Create(t.Context(), object, client.DryRunAll), "spec: Required value")
}

// TestValidateWorkSet_RulesWithoutAPIServer checks the rules that the API server cannot check, so that clients of a
// WorkSet must.
func TestValidateWorkSet_RulesWithoutAPIServer(t *testing.T) {
	c := installed(t)
	big := func(n int) string { return `data: {a: ` + as(n) + `}` }
	labels := `{matchLabels: {two words: a}}`
	for _, test := range []struct{ reason, fields, field, want string }{
		{"a duplicate manifest", `manifests: [` + configMap + `, ` + configMap + `]`, "manifests[0]", "Duplicate value"},
		{"a manifest with an owner", `manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, ownerReferences: ` +
			`[{apiVersion: v1, kind: Node, name: a, uid: b}]}}]`, "manifests[0].metadata.ownerReferences", "remove it"},
		{"a manifest that is nested too deep", `manifests: [{apiVersion: v1, kind: A, metadata: {name: a}, spec: ` +
			strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100) + `}]`, "manifests[0]", "more than 100 deep"},
		{"manifests that exceed the total size", `manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, ` +
			big(260<<10) + `}, {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, ` + big(260<<10) + `}]`, "manifests",
			"at most 524288 bytes as JSON"},
		{"a manifest that is too long after the escape of <",
			`manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "` + strings.Repeat("<", 100<<10) +
				`"}}]`, "manifests", "got 6144"},
		{"manifestOptions that exceed the total size", `work: {manifestOptions: ` +
			list(70, `{select: {name: "#"}, readiness: {cel: "`+as(2000)+`"}}`) + `}`, "work.manifestOptions",
			"at most 131072 bytes as JSON"},
		{"overrides that exceed the total size", `overrides: {rules: ` + list(30, `{mergePatch: {a: `+as(9000)+`}}`) + `}`,
			"overrides.rules", "at most 262144 bytes as JSON together"},
		{"a spec that exceeds the total size", `replicas: {strategy: StaticWeight, weights: ` +
			list(20, `{weight: 1, clusters: {names: `+list(999, as(50)+"#")+`}}`) + `}`, "", "at most 950272 bytes as JSON"},
		{"an identifying field in ignoredFields",
			`work: {manifestOptions: [{select: {name: a}, ignoredFields: [.metadata.name]}]}`,
			"work.manifestOptions[0].ignoredFields[0]", "make the object"},
		{"a patch operation add without a value", `overrides: {rules: [{jsonPatch: [{op: add, path: /a}]}]}`,
			"overrides.rules[0].jsonPatch[0].value", "value is required"},
		{"a merge patch of the name", `overrides: {rules: [{mergePatch: {metadata: {name: b}}}]}`,
			"overrides.rules[0].mergePatch.metadata.name", "no patch may change it"},
		{"an invalid label of a cluster selector",
			`overrides: {rules: [{clusters: [{labelSelector: ` + labels + `}], mergePatch: {}}]}`,
			"overrides.rules[0].clusters[0].labelSelector.matchLabels", "name part"},
		{"an invalid label of a weight",
			`replicas: {strategy: StaticWeight, weights: [{weight: 1, clusters: {labelSelector: ` +
				labels + `}}]}`, "replicas.weights[0].clusters.labelSelector.matchLabels", "name part"},
		{"an invalid label of a resource selector", `resources: [{kind: A, labelSelector: ` + labels + `}]`,
			"resources[0].labelSelector.matchLabels", "name part"},
		{"an invalid label of a stage", `rollout: {type: Stages, stages: [{name: a, selector: ` + labels + `}]}`,
			"rollout.stages[0].selector.matchLabels", "name part"},
		{"an orderBy that is not a label key", `rollout: {type: Stages, stages: [{name: a, orderBy: two words}]}`,
			"rollout.stages[0].orderBy", "key of a label"},
	} {
		object := workSet(t, test.fields)
		ours := validated(&decoded(t, object).Spec)
		want := strings.TrimSuffix("spec."+test.field, ".")
		if len(ours) == 0 || ours[0].Field != want || !strings.Contains(ours[0].Message, test.want) {
			t.Errorf("%s: want an error of %s with %q, got %+v", test.reason, want, test.want, ours)
		}
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s: the API server rejects the object, move the case to its rules: %v", test.reason, err)
		}
	}
}

// TestWorkSetDefaults checks that a minimal WorkSet gets the documented defaults.
func TestWorkSetDefaults(t *testing.T) {
	c := installed(t)
	set := decoded(t, workSet(t, ""))
	manifests := set.Spec.Manifests
	require.NoError(t, c.Create(t.Context(), set, client.DryRunAll))
	var want v1alpha1.WorkSetSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
placements: [{name: fleet}]
work:
  apply: {mode: ServerSideApply, takeover: Never, drift: Correct}
  waves: {timeoutSeconds: 600}
  delete: {action: Delete, propagation: Foreground}
rollout: {type: All, progressDeadlineSeconds: 600, onFailure: Halt, state: Run}
revisionHistoryLimit: 10
`), &want))
	want.Manifests = manifests
	if diff := cmp.Diff(want, set.Spec, cmp.Comparer(func(a, b runtime.RawExtension) bool {
		return string(a.Raw) == string(b.Raw)
	})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
