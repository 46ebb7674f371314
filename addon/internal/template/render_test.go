package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func spec(t require.TestingT, text string) *v1alpha1.AddonTemplateSpec {
	out := &v1alpha1.AddonTemplateSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

func manifests(t require.TestingT, texts ...string) *v1alpha1.AddonTemplateSpec {
	return spec(t, "manifests:\n- "+strings.Join(texts, "\n- "))
}

func input(t require.TestingT, settings string) template.Input {
	var s v1alpha1.AddonConfigSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(settings), &s))
	return template.Input{Cluster: "east", Addon: "logs", InstallNamespace: "logging",
		Settings: config.Values([]v1alpha1.AddonConfigSpec{s})}
}

const logs = `
version: "1.4"
manifests:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: collector}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "logs-${ADDON_NAME}"},
  rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: logs}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "logs-${ADDON_NAME}"}
  subjects: [{kind: ServiceAccount, name: collector, namespace: "${INSTALL_NAMESPACE}"}]
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "collector-${REGION}", annotations: {cluster: "${CLUSTER_NAME}"}}
  spec:
    selector: {matchLabels: {app: collector}}
    template:
      metadata: {labels: {app: collector}}
      spec:
        containers: [{name: collector, image: "quay.io/example/collector:1.4", args: ["--cluster=${CLUSTER_NAME}",
          "$(POD_IP)", "$${HOME}"]}]
- apiVersion: batch/v1
  kind: Job
  metadata: {name: flush, annotations: {addon.muster.dev/pre-delete: "true"}}
  spec: {template: {spec: {restartPolicy: Never, containers: [{name: flush, image: "quay.io/example/collector:1.4"}]}}}
manifestOptions:
- {select: {kind: Deployment, namespace: "${INSTALL_NAMESPACE}", name: "collector-${REGION}"},
  readiness: {cel: "object.status.readyReplicas > 0 || '${X}' == ''"}}
registration:
  rules: [{apiGroups: [example.com], resources: [logs], verbs: [create]}]
`

func TestRender(t *testing.T) {
	given := spec(t, logs)
	in := input(t, `{variables: [{name: REGION, value: eu}], registries: [{source: quay.io, mirror: mirror.local}]}`)
	before, settings := given.DeepCopy(), fmt.Sprint(in)
	got, err := template.Render(given, in)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(before, given), "the template was changed")
	require.Equal(t, settings, fmt.Sprint(in), "the settings were changed")
	text, err := yaml.Marshal(map[string]any{"objects": got.Objects, "hooks": got.Hooks, "options": got.Options,
		"registration": got.Registration})
	require.NoError(t, err)
	require.YAMLEq(t, `
objects:
- {apiVersion: v1, kind: Namespace, metadata: {name: logging}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: collector, namespace: logging}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "logs-logs"}, rules: [{apiGroups: [""],
  resources: [pods], verbs: [get]}]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: logs}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "logs-logs"}
  subjects: [{kind: ServiceAccount, name: collector, namespace: logging}]
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: collector-eu, namespace: logging, annotations: {cluster: east}}
  spec:
    selector: {matchLabels: {app: collector}}
    template:
      metadata: {labels: {app: collector}}
      spec:
        containers: [{name: collector, image: "mirror.local/example/collector:1.4", args: ["--cluster=east",
          "$(POD_IP)", "${HOME}"]}]
hooks:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: flush, namespace: logging, annotations: {addon.muster.dev/pre-delete: "true"}}
  spec: {template: {spec: {restartPolicy: Never, containers: [{name: flush,
    image: "mirror.local/example/collector:1.4"}]}}}
options:
- {select: {kind: Deployment, namespace: logging, name: collector-eu},
  readiness: {cel: "object.status.readyReplicas > 0 || '${X}' == ''"}}
registration:
  rules: [{apiGroups: [example.com], resources: [logs], verbs: [create]}]
`, string(text))

	// The caller may change the result.
	got.Registration.Rules[0].Verbs[0] = "delete"
	got.Objects[1].SetName("other")
	got.Options[0].Readiness.CEL = "false"
	require.Empty(t, cmp.Diff(before, given))
}

func TestRenderObjects(t *testing.T) {
	const role = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}`
	const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, ` +
		`metadata: {name: issuers.example.com}, spec: {group: example.com, scope: %s, names: {kind: Issuer, ` +
		`plural: issuers}}}`
	const issuer = `{apiVersion: example.com/v1, kind: Issuer, metadata: {name: a}}`
	for _, tc := range []struct {
		reason    string
		manifests []string
		in        func(*template.Input)
		want      []string // <kind> <namespace>/<name>, hooks with a * before
	}{
		{"no manifests", nil, nil, []string{"Namespace /logging"}},
		{"namespaced objects get the install namespace", []string{`{apiVersion: v1, kind: Secret, metadata: {name: a}}`}, nil,
			[]string{"Namespace /logging", "Secret logging/a"}},
		{"a namespace of a manifest is kept",
			[]string{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kube-system}}`},
			nil, []string{"Namespace /logging", "Secret kube-system/a"}},
		{"a namespace of a manifest with a variable is kept",
			[]string{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: "${CLUSTER_NAME}-x"}}`}, nil,
			[]string{"Namespace /logging", "Secret east-x/a"}},
		{"an empty or null namespace is replaced",
			[]string{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: ""}}`,
				`{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: null}}`}, nil,
			[]string{"Namespace /logging", "Secret logging/a", "Secret logging/b"}},
		{"cluster-scoped kinds of Kubernetes get no namespace",
			[]string{role}, nil, []string{"Namespace /logging", "ClusterRole /a"}},
		{"a cluster-scoped kind in another version gets no namespace",
			[]string{`{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: ClusterRole, metadata: {name: a}}`}, nil,
			[]string{"Namespace /logging", "ClusterRole /a"}},
		{"a kind of another group is namespaced",
			[]string{`{apiVersion: example.com/v1, kind: ClusterRole, metadata: {name: a}}`}, nil,
			[]string{"Namespace /logging", "ClusterRole logging/a"}},
		{"an unknown kind is namespaced", []string{issuer}, nil, []string{"Namespace /logging", "Issuer logging/a"}},
		{"a cluster-scoped definition in the template applies", []string{issuer, fmt.Sprintf(crd, "Cluster")}, nil,
			[]string{"Namespace /logging", "Issuer /a", "CustomResourceDefinition /issuers.example.com"}},
		{"a namespaced definition in the template applies", []string{fmt.Sprintf(crd, "Namespaced"), issuer}, nil,
			[]string{"Namespace /logging", "CustomResourceDefinition /issuers.example.com", "Issuer logging/a"}},
		{"the scope annotation of a manifest applies",
			[]string{
				`{apiVersion: example.com/v1, kind: Issuer, metadata: {name: a, annotations: {addon.muster.dev/scope: Cluster}}}`},
			nil, []string{"Namespace /logging", "Issuer /a"}},
		{"the scope annotation precedes a definition",
			[]string{fmt.Sprintf(crd, "Cluster"),
				`{apiVersion: example.com/v1, kind: Issuer, metadata: {name: a, annotations: {addon.muster.dev/scope: ` +
					`Namespaced}}}`}, nil, []string{"Namespace /logging", "CustomResourceDefinition /issuers.example.com",
				"Issuer logging/a"}},
		{"the scope annotation precedes the scope in Kubernetes",
			[]string{`{apiVersion: v1, kind: Node, metadata: {name: a, annotations: {addon.muster.dev/scope: Namespaced}}}`},
			nil, []string{"Namespace /logging", "Node logging/a"}},
		{"an existing manifest of the install namespace is used",
			[]string{role, `{apiVersion: v1, kind: Namespace, metadata: {name: logging, labels: {a: b}}}`}, nil,
			[]string{"ClusterRole /a", "Namespace /logging"}},
		{"an existing manifest of the install namespace with a variable is used",
			[]string{`{apiVersion: v1, kind: Namespace, metadata: {name: "${INSTALL_NAMESPACE}"}}`}, nil,
			[]string{"Namespace /logging"}},
		{"a manifest of another Namespace", []string{`{apiVersion: v1, kind: Namespace, metadata: {name: logging2}}`}, nil,
			[]string{"Namespace /logging", "Namespace /logging2"}},
		{"a manifest of a kind Namespace of another group",
			[]string{`{apiVersion: example.com/v1, kind: Namespace, metadata: {name: logging, namespace: a}}`}, nil,
			[]string{"Namespace /logging", "Namespace a/logging"}},
		{"a namespace that every cluster has is not added", []string{role},
			func(in *template.Input) { in.InstallNamespace = "kube-system" }, []string{"ClusterRole /a"}},
		{"hooks are separate and get the install namespace",
			[]string{`{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {addon.muster.dev/pre-delete: "true"}}}`,
				role}, nil, []string{"Namespace /logging", "ClusterRole /a", "*Pod logging/a"}},
		{"a pre-delete annotation of false",
			[]string{
				`{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {addon.muster.dev/pre-delete: "false"}}}`}, nil,
			[]string{"Namespace /logging", "Job logging/a"}},
		{"a pre-delete annotation with a variable",
			[]string{
				`{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {addon.muster.dev/pre-delete: "${HOOK}"}}}`},
			func(in *template.Input) {
				in.Settings.Variables = map[string]string{"HOOK": "true"}
			}, []string{"Namespace /logging", "*Job logging/a"}},
		{"a kind with a variable",
			[]string{`{apiVersion: "${V}", kind: "${K}", metadata: {name: "${CLUSTER_NAME}-${K}"}}`},
			func(in *template.Input) { in.Settings.Variables = map[string]string{"V": "v1", "K": "Node"} },
			[]string{"Namespace /logging", "Node /east-Node"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			in := input(t, "{}")
			if tc.in != nil {
				tc.in(&in)
			}
			given := &v1alpha1.AddonTemplateSpec{}
			if tc.manifests != nil {
				given = manifests(t, tc.manifests...)
			}
			out, err := template.Render(given, in)
			require.NoError(t, err)
			var got []string
			for _, o := range out.Objects {
				got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
			}
			for _, o := range out.Hooks {
				got = append(got, "*"+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
			}
			require.Empty(t, cmp.Diff(tc.want, got))
			require.Nil(t, out.Registration)
		})
	}
}

func TestRender_NamesOfFieldsAreNotExpanded(t *testing.T) {
	out, err := template.Render(manifests(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {"${CLUSTER_NAME}": "${CLUSTER_NAME}"}, i: 1, `+
			`f: 1.5, b: true, z: null, l: ["${REPLICAS}", [2]]}`), input(t, `{variables: [{name: REPLICAS, value: "3"}]}`))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "logging"},
		"data": map[string]any{"${CLUSTER_NAME}": "east"}, "i": int64(1), "f": 1.5, "b": true, "z": nil,
		"l": []any{"3", []any{int64(2)}},
	}, out.Objects[1].Object, "want strings to stay strings, and names of fields to stay unchanged")
}

func TestRender_Errors(t *testing.T) {
	for _, tc := range []struct {
		reason, spec, settings string
		want                   error
		message                string
	}{
		{
			"an undefined variable",
			`manifests: [{apiVersion: v1, kind: Secret, metadata: {name: "a-${CLUSTER_NAME}", namespace: x}, ` +
				`data: {ok: "${CLUSTER_NAME}", run.sh: "${ZONE}"}}]`, `{}`,
			template.ErrUnknown,
			`Secret x/a-${CLUSTER_NAME}: manifests[0].data["run.sh"]: ${ZONE}: the variable does not exist: no applicable ` +
				`AddonConfig sets it`,
		},
		{
			"an invalid variable in nested lists",
			`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a}}, {apiVersion: apps/v1, kind: Deployment, ` +
				`metadata: {name: a}, spec: {l: [a, [{b: "${x y}"}]]}}]`, `{}`,
			template.ErrSyntax, `apps/Deployment a: manifests[1].spec.l[1][0].b: line 1: a variable is`,
		},
		{
			"all errors are returned, one for each manifest",
			`{manifests: [{apiVersion: v1, kind: Secret, metadata: {name: a}, b: "${B}", a: "${A}"}, {apiVersion: v1, ` +
				`kind: Secret, metadata: {name: b}, c: "${C}"}], manifestOptions: [{select: {name: "${D}"}}]}`, `{}`,
			template.ErrUnknown, "Secret a: manifests[0].a: ${A}: the variable does not exist: no applicable AddonConfig " +
				"sets it\nSecret b: manifests[1].c: ${C}: the variable does not exist: no applicable AddonConfig sets " +
				"it\nmanifestOptions[0].select.name: ${D}: the variable does not exist",
		},
		{"a variable that an AddonConfig cannot set", `manifests: []`, `{variables: [{name: CLUSTER_NAME, value: west}]}`,
			template.ErrBuiltIn, "CLUSTER_NAME: the variable is built in, and an AddonConfig cannot set it"},
		{"a manifest is a list", `manifests: [[a]]`, `{}`, template.ErrManifest, "manifests[0]: a manifest must be"},
		{"a manifest is null", `manifests: [null]`, `{}`, template.ErrManifest, "manifests[0]: a manifest must be"},
		{"a manifest without a kind", `manifests: [{apiVersion: v1, metadata: {name: a}}]`, `{}`, template.ErrManifest,
			"manifests[0]: a manifest must be"},
		{"a manifest without a name", `manifests: [{apiVersion: v1, kind: Secret, metadata: {}}]`, `{}`, template.ErrManifest,
			"Secret : manifests[0]: a manifest must be"},
		{"a name that is empty after the expansion", `manifests: [{apiVersion: v1, kind: Secret, metadata: {name: "${E}"}}]`,
			`{variables: [{name: E}]}`, template.ErrManifest, "Secret ${E}: manifests[0]: a manifest must be"},
		{"metadata is not a map", `manifests: [{apiVersion: v1, kind: Secret, metadata: [a]}]`, `{}`, template.ErrManifest,
			""},
		{"an annotation is not a string",
			`manifests: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {a: 1}}}]`, `{}`,
			template.ErrManifest, "Secret a: manifests[0].metadata.annotations: "},
		{"a selector that is empty after the expansion",
			`{manifests: [], manifestOptions: [{select: {kind: Secret, namespace: "${E}"}}]}`, `{variables: [{name: E}]}`, nil,
			"manifestOptions[0].select.namespace: the value is empty, which would select all objects"},
		{"a hook that is a Deployment",
			`manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, ` +
				`annotations: {addon.muster.dev/pre-delete: "true"}}}]`, `{}`, template.ErrAnnotation,
			"addon.muster.dev/pre-delete is supported for Jobs and Pods"},
		{"a hook that is a Job of another group",
			`manifests: [{apiVersion: example.com/v1, kind: Job, metadata: {name: a, ` +
				`annotations: {addon.muster.dev/pre-delete: "true"}}}]`, `{}`, template.ErrAnnotation, ""},
		{"an invalid pre-delete annotation",
			`manifests: [{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {addon.muster.dev/pre-delete: ` +
				`"yes"}}}]`, `{}`, template.ErrAnnotation, `must be "true" or "false"`},
		{"an invalid scope",
			`manifests: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {addon.muster.dev/scope: cluster}}}]`,
			`{}`, template.ErrAnnotation, "addon.muster.dev/scope must be Cluster or Namespaced"},
		{"an invalid configuration", `manifests: []`, `{resources: [{workload: web, resources: {}}]}`,
			config.ErrInvalid, `resources of workload "web"`},
		{"an object that cannot be configured",
			`manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: {}}}]`,
			`{registries: [{mirror: m}]}`, nil, "configure Pod a: spec.containers must be a list"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			out, err := template.Render(spec(t, tc.spec), input(t, tc.settings))
			require.ErrorContains(t, err, tc.message)
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
			}
			require.Empty(t, out)
		})
	}
}

func TestRender_ErrorIsDeterministic(t *testing.T) {
	given := manifests(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {h: "${H}", g: "${G}", f: "${F}", e: "${E}", `+
			`d: "${D}", c: "${C}", b: "${B}", a: "${A}"}}`)
	for range 20 {
		_, err := template.Render(given, input(t, "{}"))
		require.ErrorContains(t, err, "manifests[0].data.a: ${A}: ")
	}
}

// TestRender_SizeIsBounded checks that the limit applies to all strings of a template together.
func TestRender_SizeIsBounded(t *testing.T) {
	const value = 4096
	text := fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "%s"}}`,
		strings.Repeat("${A}", workv1alpha1.MaxManifestBytes/value/2))
	in := input(t, "{}")
	in.Settings.Variables = map[string]string{"A": strings.Repeat("x", value)}
	_, err := template.Render(manifests(t, text, text), in)
	require.NoError(t, err)
	_, err = template.Render(manifests(t, text, text, text), in)
	require.ErrorIs(t, err, template.ErrTooLarge)
	require.ErrorContains(t, err, "ConfigMap a: manifests[2].data.a: ${A}: ")
}

func TestRenderProperties(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b ", "${CLUSTER_NAME}", "${A}", "${INSTALL_NAMESPACE}", "$(X)", "\n"})
	texts := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "") })
	kinds := rapid.SampledFrom([]string{`"apiVersion":"v1","kind":"ConfigMap"`,
		`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole"`, `"apiVersion":"v1","kind":"Pod"`})
	rapid.Check(t, func(t *rapid.T) {
		given := &v1alpha1.AddonTemplateSpec{}
		for i := range rapid.IntRange(0, 4).Draw(t, "manifests") {
			m := v1alpha1.TemplateManifest{}
			m.Raw = fmt.Appendf(nil, `{%s,"metadata":{"name":"a%d-${A}"},"data":{"${A}":%q,"list":[%q,1]}}`,
				kinds.Draw(t, "kind"), i, texts.Draw(t, "text"), texts.Draw(t, "text"))
			given.Manifests = append(given.Manifests, m)
		}
		in := input(t, `{variables: [{name: A, value: x}], nodePlacement: {nodeSelector: {a: b}}}`)
		before := given.DeepCopy()
		got, err := template.Render(given, in)
		require.NoError(t, err)
		again, err := template.Render(given, in)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(got, again), "want equal results for equal arguments")
		require.Empty(t, cmp.Diff(before, given), "the template was changed")
		require.Len(t, got.Objects, len(given.Manifests)+1)
		for _, o := range got.Objects {
			text, err := o.MarshalJSON()
			require.NoError(t, err)
			require.NotContains(t, strings.ReplaceAll(string(text), `"${A}":`, ""), "${", "want no remaining variable")
		}
	})
}

// FuzzRender checks that no stored template can make a hub panic, and that rendering is deterministic.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"image":"${CLUSTER_NAME}"}],` +
			`"volumes":[{"image":{"reference":"a"}}]}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"addon.muster.dev/scope":"Cluster"}},` +
			`"data":{"a":"$${"}}`,
		`{"apiVersion":"batch/v1","kind":"CronJob","metadata":null,"spec":{"jobTemplate":[]}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},` +
			`"spec":{"names":[]}}`,
	} {
		f.Add(seed)
	}
	in := input(f,
		`{variables: [{name: A, value: "${A}"}], nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: x}]}, `+
			`proxy: {http: p}, registries: [{mirror: m}], resources: [{resources: {limits: {cpu: 1}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		given := &v1alpha1.AddonTemplateSpec{Manifests: []v1alpha1.TemplateManifest{{}}}
		given.Manifests[0].Raw = []byte(text)
		got, err := template.Render(given, in)
		again, errAgain := template.Render(given, in)
		require.Empty(t, cmp.Diff(got, again))
		require.Equal(t, err == nil, errAgain == nil)
		if err != nil {
			require.Equal(t, err.Error(), errAgain.Error())
			require.Empty(t, got)
			return
		}
		twice, err := in.Settings.Apply(got.Objects)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(got.Objects, twice), "want settings to be applied already")
	})
}
