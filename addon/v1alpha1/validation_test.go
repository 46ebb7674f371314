package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// parsed decodes a spec from YAML, and rejects unknown fields.
func parsed[T any](t *testing.T, text string) *T {
	t.Helper()
	spec := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), spec))
	return spec
}

// Errors are returned in the order of the fields. The individual rules, and that they match those of the API server,
// are tested in package crds.
func TestValidate_ErrorsInOrderOfFields(t *testing.T) {
	addon := parsed[v1alpha1.AddonSpec](t, `
installNamespace: A
hostingMembers: [A, b, b]
configs:
- {group: A, resource: A, defaults: [{namespace: A, name: ""}]}
- {resource: a}
- {resource: a}
install:
  type: a
  placements:
  - {namespace: A, name: "", configs: [{group: A, resource: B, name: ""}], hostingMember: c, rollout: {type: a},
    approvals: [{revision: "", stage: "", gate: ""}]}
  - {namespace: a, name: b, configs: [{resource: a, name: c}], hostingMember: b}
health: {type: a, leaseDurationSeconds: 60}
removal: {deadlineSeconds: 1}
`)
	member := parsed[v1alpha1.MemberAddonSpec](t, `
installNamespace: A
configs: [{group: addon.muster.dev, resource: addonconfigs, name: a}]
hostingMember: A
removalDeadlineSeconds: -1
`)
	config := parsed[v1alpha1.AddonConfigSpec](t, `
installNamespace: A
variables: [{name: A}, {name: 1}, {name: A}]
nodePlacement: {nodeSelector: {a b: c}, tolerations: [{operator: a, effect: a}]}
registries: [{source: /, mirror: ""}]
proxy: {http: " ", https: " ", noProxy: "\n"}
resources:
- {workload: a, container: A, resources: {requests: {a b: 1}, limits: {c: -1}}}
- {resources: {requests: {cpu: 2}, limits: {cpu: 1}}}
`)
	template := parsed[v1alpha1.AddonTemplateSpec](t, `
manifests:
- {apiVersion: v1, kind: Namespace, metadata: {name: "${A}"}}
- {apiVersion: v1, kind: Namespace, metadata: {name: "${A}"}}
- {}
- {apiVersion: v1, kind: A, metadata: {name: a, annotations: {addon.muster.dev/pre-delete: "true"}}, b: "${"}
apply: {mode: a, fieldOwner: a}
manifestOptions: [{select: {}}]
waves: {timeoutSeconds: -1}
executor: {namespace: A, name: ""}
registration: {credential: a, expirationSeconds: 1, rules: [{verbs: [], nonResourceURLs: [/]}], secretName: A}
`)
	for _, test := range []struct {
		name     string
		validate func() field.ErrorList
		spec     any
		before   any
		want     string
	}{
		{"Addon", addon.Validate, addon, addon.DeepCopy(), `
installNamespace
hostingMembers[0]
hostingMembers[2]
configs[0].group
configs[0].resource
configs[0].defaults[0].namespace
configs[0].defaults[0].name
configs[2]
install.type
install.placements
install.placements[0].namespace
install.placements[0].name
install.placements[0].configs[0].group
install.placements[0].configs[0].resource
install.placements[0].configs[0].name
install.placements[0].rollout.type
install.placements[0].approvals[0].revision
install.placements[0].approvals[0].stage
install.placements[0].approvals[0].gate
install.placements[0].configs[0]
install.placements[0].hostingMember
health.type
health.leaseDurationSeconds
removal.deadlineSeconds`},
		{"MemberAddon", member.Validate, member, member.DeepCopy(), `
installNamespace
configs[0].namespace
hostingMember
removalDeadlineSeconds`},
		{"AddonConfig", config.Validate, config, config.DeepCopy(), `
installNamespace
variables[1].name
variables[2]
nodePlacement.nodeSelector[a b]
nodePlacement.tolerations[0].operator
nodePlacement.tolerations[0].effect
nodePlacement.tolerations[0].key
registries[0].source
registries[0].mirror
proxy.http
proxy.https
proxy.noProxy
resources[0].workload
resources[0].container
resources[0].resources.requests[a b]
resources[0].resources.limits[c]
resources[1].resources.requests[cpu]`},
		{"AddonTemplate", template.Validate, template, template.DeepCopy(), `
manifests[3].b
manifests[0]
manifests[1]
manifests[2].apiVersion
manifests[2].kind
manifests[2].metadata.name
manifests[3].kind
apply.fieldOwner
apply.mode
manifestOptions[0].select
waves.timeoutSeconds
executor.namespace
executor.name
registration.credential
registration.expirationSeconds
registration.rules[0].verbs
registration.rules[0].apiGroups
registration.rules[0].resources
registration.rules[0].nonResourceURLs
registration.secretName`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, err := range test.validate() {
				got = append(got, strings.TrimPrefix(err.Field, "spec."))
			}
			if diff := cmp.Diff(strings.Split(strings.TrimSpace(test.want), "\n"), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.before, test.spec); diff != "" {
				t.Errorf("want an unchanged spec (-before +after)\n%s", diff)
			}
		})
	}
}

// The zero values of all specs are valid, except that of an AddonTemplate, which requires manifests.
func TestValidateEmpty(t *testing.T) {
	require.Empty(t, (&v1alpha1.AddonSpec{}).Validate())
	require.Empty(t, (&v1alpha1.MemberAddonSpec{}).Validate())
	require.Empty(t, (&v1alpha1.AddonConfigSpec{}).Validate())
	errs := (&v1alpha1.AddonTemplateSpec{}).Validate()
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "spec.manifests: Required value: write an empty list")
}

// A manifest that is not valid JSON or is nested too deeply is reported with its index and hides no other error.
func TestValidateBrokenManifests(t *testing.T) {
	var spec v1alpha1.AddonTemplateSpec
	for _, raw := range []string{
		`{`, `{"a":"${A}"`, `null`, `["${A}"]`,
		`{"a":` + strings.Repeat(`["${A}",`, 200) + `1` + strings.Repeat(`]`, 200) + `}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":"${A}"}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"addon.muster.dev/pre-delete":true}}}`,
	} {
		spec.Manifests = append(
			spec.Manifests,
			v1alpha1.TemplateManifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}},
		)
	}
	reported := map[int]bool{}
	for _, err := range spec.Validate() {
		var i int
		_, scanErr := fmt.Sscanf(err.Field, "spec.manifests[%d]", &i)
		require.NoError(t, scanErr, err.Field)
		reported[i] = true
	}
	require.Len(t, reported, len(spec.Manifests), "manifests with an error")
}

// Values may be longer than the variables that they replace: a template of the maximum length is valid.
func TestValidateManyVariables(t *testing.T) {
	raw := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":%q}}`,
		strings.Repeat("${A}", 120<<10),
	)
	spec := v1alpha1.AddonTemplateSpec{
		Manifests: []v1alpha1.TemplateManifest{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}},
	}
	require.Empty(t, spec.Validate())
}

// TestTrim checks that Trim removes the last stages of the longest rollouts, and only if the status is too long.
func TestTrim(t *testing.T) {
	status := func(rows ...int) (s v1alpha1.AddonStatus) {
		for _, n := range rows {
			p := v1alpha1.PlacementStatus{Name: fmt.Sprint("p", n)}
			for i := range n {
				p.Rollout.Stages = append(
					p.Rollout.Stages,
					placementv1alpha1.RolloutStageStatus{Name: fmt.Sprint(strings.Repeat("g", 1000), i)},
				)
			}
			s.Placements = append(s.Placements, p)
		}
		return s
	}
	for _, test := range []struct {
		reason       string
		before, want []int
	}{
		{"a short status is unchanged", []int{100, 100}, []int{100, 100}},
		{"the longest rollout is cut", []int{100, 256}, []int{100, 144}},
		{"the longest rollouts are cut in turns", []int{200, 33, 200}, []int{84, 33, 112}},
		{"at least 33 stages of a rollout are kept", []int{256, 33, 33, 33, 33, 33, 33, 33, 33, 33},
			[]int{33, 33, 33, 33, 33, 33, 33, 33, 33, 33}},
		{"no rollouts", nil, nil},
	} {
		got := status(test.before...)
		got.Trim()
		var rows []int
		for i, p := range got.Placements {
			rows = append(rows, len(p.Rollout.Stages))
			require.Equal(
				t,
				status(test.before...).Placements[i].Rollout.Stages[:len(p.Rollout.Stages)],
				p.Rollout.Stages,
				test.reason,
			)
		}
		if diff := cmp.Diff(test.want, rows); diff != "" {
			t.Errorf("%s: rows (-want +got)\n%s", test.reason, diff)
		}
	}
}
