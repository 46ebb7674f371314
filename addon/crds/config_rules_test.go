package crds_test

import "slices"

func inNodes(fields string) string     { return `nodePlacement: {` + fields + `}` }
func tolerated(fields string) string   { return inNodes(`tolerations: [{` + fields + `}]`) }
func inContainer(fields string) string { return `resources: [{resources: {}, ` + fields + `}]` }
func requested(amounts string) string  { return `resources: [{resources: {requests: ` + amounts + `}}]` }
func limited(amounts string) string    { return `resources: [{resources: {limits: ` + amounts + `}}]` }
func mirrored(source, to string) string {
	return `registries: [{source: ` + source + `, mirror: ` + to + `}]`
}

// keys returns a map in YAML, with a number in each key.
func keys(n int, value string) string {
	entries := list(n, `k#: `+value)
	return `{` + entries[1:len(entries)-1] + `}`
}

var configRules = slices.Concat(
	[]rule{
		{
			"more variables than the maximum",
			`variables: ` + list(129, `{name: A#}`),
			`variables: ` + list(128, `{name: A#}`),
			"variables",
			"must have at most 128 items",
		},
		{
			"a duplicate variable",
			`variables: [{name: A}, {name: A, value: a}]`,
			`variables: [{name: A}, {name: a, value: a}]`,
			"variables[1]",
			"Duplicate value",
		},
		{
			"the reserved variable CLUSTER_NAME",
			`variables: [{name: CLUSTER_NAME, value: a}]`,
			`variables: [{name: CLUSTER_NAMES, value: a}]`,
			"variables[0].name",
			"are set by the hub",
		},
		{
			"the reserved variable ADDON_NAME",
			`variables: [{name: ADDON_NAME}]`,
			`variables: [{name: addon_name}]`,
			"variables[0].name",
			"are set by the hub",
		},
		{
			"the reserved variable INSTALL_NAMESPACE",
			`variables: [{name: INSTALL_NAMESPACE}]`,
			`installNamespace: a`,
			"variables[0].name",
			"are set by the hub",
		},
		{
			"a value longer than the maximum",
			`variables: [{name: A, value: ` + as(4097) + `}]`,
			`variables: [{name: A, value: ` + as(4096) + `}]`,
			"variables[0].value",
			"4096",
		},

		{
			"more labels of the node selector than the maximum",
			inNodes(`nodeSelector: ` + keys(33, "a")),
			inNodes(`nodeSelector: ` + keys(32, "a")),
			"nodePlacement.nodeSelector",
			"must have at most 32",
		},
		{
			"an invalid key of the node selector",
			inNodes(`nodeSelector: {two words: a}`),
			inNodes(`nodeSelector: {node-role.kubernetes.io/infra: ""}`),
			"nodePlacement.nodeSelector",
			"nodeSelector must have keys of labels",
		},
		{
			"an invalid value of the node selector",
			inNodes(`nodeSelector: {a: ` + as(64) + `}`),
			inNodes(`nodeSelector: {a: ` + as(63) + `}`),
			"nodePlacement.nodeSelector",
			"nodeSelector must have values of labels",
		},
		{
			"more tolerations than the maximum",
			inNodes(`tolerations: ` + list(33, `{operator: Exists}`)),
			inNodes(`tolerations: ` + list(32, `{operator: Exists}`)),
			"nodePlacement.tolerations",
			"must have at most 32 items",
		},
		{
			"an unknown operator of a toleration",
			tolerated(`key: a, operator: Like`),
			tolerated(`key: a, operator: Gt, value: "1"`),
			"nodePlacement.tolerations[0].operator",
			"operator must be Equal, Exists, Lt or Gt",
		},
		{
			"an unknown effect of a toleration",
			tolerated(`key: a, effect: NoWay`),
			tolerated(`key: a, effect: ""`),
			"nodePlacement.tolerations[0].effect",
			"effect must be NoSchedule, PreferNoSchedule or NoExecute",
		},
		{
			"a toleration without a key and without operator Exists",
			tolerated(`effect: NoExecute`),
			tolerated(`operator: Exists, effect: NoExecute`),
			"nodePlacement.tolerations[0].key",
			"key is required unless the operator is Exists",
		},
		{
			"an invalid key of a toleration",
			tolerated(`key: ` + as(318)),
			tolerated(`key: example.com/maintenance`),
			"nodePlacement.tolerations[0].key",
			"key must be a qualified name",
		},
		{
			"an invalid value of a toleration",
			tolerated(`key: a, value: ` + as(64)),
			tolerated(`key: a, value: ` + as(63)),
			"nodePlacement.tolerations[0].value",
			"value must be up to 63 letters",
		},
		{
			"a value with operator Exists",
			tolerated(`key: a, operator: Exists, value: b`),
			tolerated(`key: a, operator: Exists, value: ""`),
			"nodePlacement.tolerations[0].value",
			"operator Exists tolerates every value",
		},
		{
			"tolerationSeconds without effect NoExecute",
			tolerated(`key: a, tolerationSeconds: 5`),
			tolerated(`key: a, effect: NoExecute, tolerationSeconds: -5`),
			"nodePlacement.tolerations[0].tolerationSeconds",
			"tolerationSeconds may only be set with effect NoExecute",
		},

		{
			"more registries than the maximum",
			`registries: ` + list(65, `{mirror: "a#"}`),
			`registries: ` + list(64, `{mirror: "a#"}`),
			"registries",
			"must have at most 64 items",
		},
		{
			"an HTTP proxy with a space",
			`proxy: {http: "http://a b"}`,
			`proxy: {http: "http://user:pass@[::1]:3128"}`,
			"proxy.http",
			"http must be the URL of a proxy",
		},
		{
			"an HTTPS proxy with a line break",
			`proxy: {https: "http://a\n"}`,
			`proxy: {https: "socks5://a"}`,
			"proxy.https",
			"https must be the URL of a proxy",
		},
		{
			"noProxy with a line break",
			`proxy: {noProxy: "a\nb"}`,
			`proxy: {noProxy: ".svc, 10.0.0.0/8"}`,
			"proxy.noProxy",
			"noProxy must be names of hosts and networks",
		},
		{
			"an HTTP proxy longer than the maximum",
			`proxy: {http: ` + as(1025) + `}`,
			`proxy: {http: ` + as(1024) + `}`,
			"proxy.http",
			"1024",
		},
		{
			"an HTTPS proxy longer than the maximum",
			`proxy: {https: ` + as(1025) + `}`,
			`proxy: {https: ` + as(1024) + `}`,
			"proxy.https",
			"1024",
		},
		{
			"noProxy longer than the maximum",
			`proxy: {noProxy: ` + as(4097) + `}`,
			`proxy: {noProxy: ` + as(4096) + `}`,
			"proxy.noProxy",
			"4096",
		},

		{
			"more entries of resources than the maximum",
			`resources: ` + list(65, `{container: "a#", resources: {}}`),
			`resources: ` + list(64, `{container: "a#", resources: {}}`),
			"resources",
			"must have at most 64 items",
		},
		{
			"a workload longer than the maximum",
			inContainer(`workload: Deployment/` + as(310)),
			inContainer(`workload: Deployment/` + as(309)),
			"resources[0].workload",
			"320",
		},
		{
			"a workload without a kind",
			inContainer(`workload: web`),
			inContainer(`workload: "*/web"`),
			"resources[0].workload",
			"workload must be the kind and the name of a workload",
		},
		{
			"a workload with a namespace",
			inContainer(`workload: Deployment/shop/web`),
			inContainer(`workload: deployment/web.eu`),
			"resources[0].workload",
			"workload must be the kind and the name of a workload",
		},
		{
			"a workload whose name is a pattern",
			inContainer(`workload: Deployment/web-*`),
			inContainer(`workload: Deployment/*`),
			"resources[0].workload",
			"workload must be the kind and the name of a workload",
		},
		{
			"more requests than the maximum",
			requested(keys(17, `"1"`)),
			requested(keys(16, `"1"`)),
			"resources[0].resources.requests",
			"must have at most 16",
		},
		{
			"more limits than the maximum",
			limited(keys(17, `"1"`)),
			limited(keys(16, `"1"`)),
			"resources[0].resources.limits",
			"must have at most 16",
		},
		{
			"a negative request",
			requested(`{cpu: "-1"}`),
			requested(`{cpu: "0"}`),
			"resources[0].resources.requests",
			"requests must not be negative",
		},
		{
			"a negative request, as a number",
			requested(`{cpu: -1}`),
			`resources: [{resources: {requests: {cpu: 1}, limits: {cpu: 1000m}}}]`,
			"resources[0].resources.requests",
			"requests must not be negative",
		},
		{
			"a negative limit",
			limited(`{cpu: "-1"}`),
			limited(`{cpu: 100m}`),
			"resources[0].resources.limits",
			"limits must not be negative",
		},
		{
			"an invalid resource name of a request",
			requested(`{two words: "1"}`),
			requested(`{nvidia.com/gpu: "1"}`),
			"resources[0].resources.requests",
			"requests must have qualified names",
		},
		{
			"an invalid resource name of a limit",
			limited(`{two words: "1"}`),
			limited(`{nvidia.com/gpu: "1"}`),
			"resources[0].resources.limits",
			"limits must have qualified names",
		},
	},
	textRules(
		"installNamespace",
		"installNamespace must be the name of a namespace",
		63,
		func(text string) string { return `installNamespace: ` + text },
		"Addons",
		"a.b",
	),
	textRules(
		"variables[0].name",
		"the name of a variable must be letters",
		128,
		func(text string) string { return `variables: [{name: ` + text + `}]` },
		`""`,
		"1a",
		"a-b",
		"muster.cluster",
	),
	textRules(
		"registries[0].source",
		"source must be a registry",
		512,
		func(text string) string { return mirrored(text, "a") },
		"https://quay.io",
		"quay.io/",
		"quay.io/a//b",
		"quay.io/A",
		"web@sha256",
		"a b",
	),
	textRules(
		"registries[0].mirror",
		"mirror must be a registry",
		512,
		func(text string) string { return mirrored(`""`, text) },
		`""`,
		"https://quay.io",
		"quay.io/",
		"web:latest",
	),
	textRules(
		"resources[0].container",
		"container must be the name of a container",
		63,
		func(text string) string { return inContainer(`container: ` + text) },
		"Web",
		`"*"`,
	),
	[]rule{
		{
			"a mirror with an invalid port",
			mirrored("quay.io", "localhost:port/a"),
			mirrored("quay.io:443", "localhost:5000/a_b/c.d/e--f"),
			"registries[0].mirror",
			"mirror must be a registry",
		},
		{
			"a mirror with an invalid address",
			mirrored("quay.io", `"::1"`),
			mirrored("example/web", `"[::1]:5000/a"`),
			"registries[0].mirror",
			"mirror must be a registry",
		},
	},
)

var missingOfConfigs = map[string]string{
	"variables[0].name":      `variables: [{value: a}]`,
	"registries[0].mirror":   `registries: [{source: a}]`,
	"resources[0].resources": `resources: [{container: a}]`,
	// Go programs cannot decode these quantities.
	"resources[0].resources.requests.cpu": `resources: [{resources: {requests: {cpu: 1e1000}}}]`,
	"resources[0].resources.limits.cpu":   `resources: [{resources: {limits: {cpu: "1e-2147483647"}}}]`,
}
