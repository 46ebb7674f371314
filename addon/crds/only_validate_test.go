package crds_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestValidate_ErrorsThatTheAPIServerAccepts checks rules that only Validate can check.
func TestValidate_ErrorsThatTheAPIServerAccepts(t *testing.T) {
	c := installed(t)
	hook := func(annotations, rest string) string {
		return `manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {` + annotations + `}}, ` + rest +
			`}]`
	}
	text := func(text string) string {
		return `manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: {b: [` + text + `]}}}]`
	}
	data := func(name string, n int) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}, data: {a: ` + as(n) + `}}`
	}
	const syntax = "a variable is ${NAME}"
	all := kinds()
	addon, config, template := &all[0], &all[2], &all[3]
	for _, test := range []struct {
		kind                        *kind
		reason, fields, field, want string
	}{
		{addon, "an invalid label of a stage selector",
			placed(`rollout: {type: Stages, stages: [{name: a, selector: {matchLabels: {two words: a}}}]}`),
			"install.placements[0].rollout.stages[0].selector.matchLabels", "name part"},
		{addon, "a spec longer than the maximum",
			configKinds + `, install: {type: Placements, placements: ` +
				list(16, `{namespace: fleet, name: "p#", configs: `+
					list(32, `{resource: configmaps, namespace: `+as(63)+`, name: c#`+as(240)+`, group: `+as(253)+`}`)+`}`) + `}`,
			"", "must be at most 262144"},

		{config, "variables longer than the maximum of a spec",
			`variables: ` + list(128, `{name: A#, value: "`+strings.Repeat("<", 1000)+`"}`), "", "must be at most 524288"},
		{config, "an invalid value of the node selector", `nodePlacement: {nodeSelector: {a: two words}}`,
			"nodePlacement.nodeSelector[a]", "nodeSelector must have values of labels"},
		{config, "an invalid key of a toleration", `nodePlacement: {tolerations: [{key: two words}]}`,
			"nodePlacement.tolerations[0].key", "key must be a qualified name"},
		{config, "an invalid value of a toleration", `nodePlacement: {tolerations: [{key: a, value: two words}]}`,
			"nodePlacement.tolerations[0].value", "value must be up to 63 letters"},
		{config, "a request above its limit",
			`resources: [{resources: {requests: {cpu: "1.5", memory: 1Gi}, limits: {cpu: 1500m, memory: 1G}}}]`,
			"resources[0].resources.requests[memory]", "must not exceed its limit, which is 1G"},

		{template, "an object without a name", `manifests: [{apiVersion: v1, kind: Namespace}]`,
			"manifests[0].metadata.name", "metadata.name is required"},
		{template, "an object with generateName",
			`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, generateName: a-}}]`,
			"manifests[0].metadata.generateName", "cannot be used"},
		{template, "an object without a kind", `manifests: [{apiVersion: v1, metadata: {name: a}}]`, "manifests[0].kind",
			"write the kind of the object"},
		{template, "a manifest of a Work",
			`manifests: [{apiVersion: work.muster.dev/v1alpha1, kind: Work, metadata: {name: a, namespace: b}}]`,
			"manifests[0].apiVersion", "cannot carry objects of work.muster.dev"},
		{template, "an invalid label with a variable",
			`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {a: "${A} and"}}}]`,
			"manifests[0].metadata.labels", "a valid label"},
		{template, "a duplicate object", `manifests: [` + configMap + `, ` + configMap + `]`, "manifests[0]",
			"Duplicate value"},
		{template, "a duplicate object with a variable in its name",
			`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: "${A}"}}, {apiVersion: v1, kind: Namespace, ` +
				`metadata: {name: "${B}"}}, {apiVersion: v1, kind: Namespace, metadata: {name: "${A}"}}]`, "manifests[0]",
			"the manifest has the object of spec.manifests[2] as well"},
		{template, "an object with an owner reference",
			`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Node, ` +
				`name: a, uid: b}]}}]`, "manifests[0].metadata.ownerReferences", "remove it"},
		{template, "manifests longer than the maximum of a template",
			`manifests: [` + data("a", 260<<10) + `, ` + data("b", 260<<10) + `]`, "manifests", "must be at most 524288"},
		{template, "a character that is stored as six bytes",
			`manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "` + strings.Repeat("<", 100<<10) +
				`"}}]`, "manifests", "got 6144"},
		{template, "options longer than the maximum of a template",
			`manifestOptions: ` + list(70, `{select: {name: "#"}, readiness: {cel: "`+as(2000)+`"}}`), "manifestOptions",
			"must be at most 131072"},
		{template, "a field that cannot be ignored",
			`manifestOptions: [{select: {name: a}, ignoredFields: [.metadata.name]}]`, "manifestOptions[0].ignoredFields[0]",
			"make the object"},
		{template, "a spec longer than the maximum",
			`registration: {rules: ` +
				list(32, `{verbs: [get], apiGroups: [""], resources: [configmaps], resourceNames: `+list(99, as(250)+"#")+`}`) +
				`}`, "", "must be at most 720896"},
		{template, "a shell variable with a default", text(`"${HOME:-/root}"`), "manifests[0].data.a.b[0]", syntax},
		{template, "a variable without a closing brace", text(`a, "${A"`), "manifests[0].data.a.b[1]", syntax},
		{template, "a variable without a name", text(`"$$${}"`), "manifests[0].data.a.b[0]", syntax},
		{template, "an invalid variable in the name of a selector", `manifestOptions: [{select: {name: "${a-b}"}}]`,
			"manifestOptions[0].select.name", syntax},
		{template, "an invalid variable in the namespace of a selector", `manifestOptions: [{select: {namespace: "${1}"}}]`,
			"manifestOptions[0].select.namespace", syntax},
		{template, "an invalid value of the pre-delete annotation",
			hook(`addon.muster.dev/pre-delete: "yes"`, `spec: {restartPolicy: Never}`),
			"manifests[0].metadata.annotations[addon.muster.dev/pre-delete]", `supported values: "true", "false"`},
		{template, "a hook that restarts forever", hook(`addon.muster.dev/pre-delete: "true"`, `spec: {}`),
			"manifests[0].spec.restartPolicy", "set it to Never or OnFailure"},
		{template, "a hook that is neither a Job nor a Pod",
			`manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {addon.muster.dev/pre-delete: ` +
				`"true"}}}]`, "manifests[0].kind", "must be a Job or a Pod"},
		{template, "an unknown scope", hook(`addon.muster.dev/scope: Galaxy`, `spec: {}`),
			"manifests[0].metadata.annotations[addon.muster.dev/scope]", `supported values: "Cluster", "Namespaced"`},
		{template, "an unknown location", hook(`addon.muster.dev/location: Hub`, `spec: {}`),
			"manifests[0].metadata.annotations[addon.muster.dev/location]", `supported values: "Member", "Hosting"`},
	} {
		object := test.kind.object(t, test.fields)
		fromValidate := test.kind.validated(t, object)
		if len(fromValidate) == 0 || fromValidate[0].Field != below(test.field) || !strings.Contains(fromValidate[0].Message,
			test.want) {
			t.Errorf("%s: want an error for %s with %q, got %s", test.reason, below(test.field), test.want, cut(fromValidate))
		}
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf(
				"%s: the API server rejects this object, so its rules belong to the CustomResourceDefinition: %v",
				test.reason,
				err,
			)
		}
	}
}

// cut shortens a value for a message.
func cut(value any) string {
	text := fmt.Sprintf("%+v", value)
	return text[:min(len(text), 500)]
}

// TestTemplates_ValidForBoth checks valid values that resemble invalid ones.
func TestTemplates_ValidForBoth(t *testing.T) {
	c := installed(t)
	template := &kinds()[3]
	for reason, fields := range map[string]string{
		"variables in names and labels": `manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: ` +
			`"${ADDON_NAME}-${CLUSTER_NAME}", namespace: "${INSTALL_NAMESPACE}", labels: {cluster: "${CLUSTER_NAME}"}}}]`,
		"a dollar sign without a brace, and an escaped variable": `manifests: ` +
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, ` +
			`data: {a: "$HOME $(POD_IP) $${HOME:-a} $$${A} $$$${"}}]`,
		"a variable in the name of a field is ignored": `manifests: ` +
			`[{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, ` +
			`data: {"${1}": a}}]`,
		"a Job that runs before the removal": `manifests: [{apiVersion: batch/v1, kind: Job, metadata: {name: a, ` +
			`annotations: {addon.muster.dev/pre-delete: "true"}}}]`,
		"a Pod that ends": `manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: ` +
			`{addon.muster.dev/pre-delete: "true", addon.muster.dev/location: Hosting}}, spec: {restartPolicy: OnFailure}}]`,
		"a Pod without restartPolicy that is not a hook": `manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a, ` +
			`annotations: {addon.muster.dev/pre-delete: "false", addon.muster.dev/scope: Namespaced}}}]`,
	} {
		template.bothAccept(t, c, reason, fields)
	}
}
