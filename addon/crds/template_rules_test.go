package crds_test

import "slices"

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`

var templateRules = slices.Concat(
	[]rule{
		{"a version longer than the maximum", `version: ` + as(129), `version: ` + as(128), "version", "128"},
		{
			"more manifests than the maximum",
			`manifests: ` + list(201, `{apiVersion: v1, kind: Namespace, metadata: {name: "a#"}}`),
			`manifests: ` + list(200, `{apiVersion: v1, kind: Namespace, metadata: {name: "a#"}}`),
			"manifests",
			"must have at most 200 items",
		},

		{
			"an unknown apply mode",
			`apply: {mode: Update}`,
			`apply: {mode: CreateOnly}`,
			"apply.mode",
			`supported values: "ServerSideApply", "CreateOnly", "Observe", "ReportDiff"`,
		},
		{
			"an unknown takeover",
			`apply: {takeover: Sometimes}`,
			`apply: {takeover: Always}`,
			"apply.takeover",
			`supported values: "Never", "IfNoDiff", "Always"`,
		},
		{"an unknown value of recreate", `apply: {recreate: Always}`, `apply: {recreate: IfImmutable}`, "apply.recreate",
			`supported values: "Never", "IfImmutable"`},
		{
			"an unknown value of additions",
			`apply: {additions: Undo}`,
			`apply: {additions: Remove}`,
			"apply.additions",
			`supported values: "Keep", "Report", "Remove"`,
		},
		{
			"an unknown value of drift",
			`apply: {drift: Undo}`,
			`apply: {drift: Report}`,
			"apply.drift",
			`supported values: "Correct", "Report", "Ignore"`,
		},
		{
			"a field owner",
			`apply: {fieldOwner: me}`,
			`apply: {fieldOwner: ""}`,
			"apply.fieldOwner",
			"fieldOwner must not be set in a template",
		},
		{"a field owner longer than the maximum",
			`apply: {fieldOwner: ` + as(129) + `}`, `apply: {}`, "apply.fieldOwner", "128"},
		{
			"an invalid field owner",
			`apply: {fieldOwner: "me "}`,
			`apply: {keepConflicts: true}`,
			"apply.fieldOwner",
			"",
		},
		{
			"a negative timeout of waves",
			`waves: {timeoutSeconds: -1}`,
			`waves: {timeoutSeconds: 1}`,
			"waves.timeoutSeconds",
			"should be greater than or equal to 1",
		},
		{
			"a timeout of waves above the maximum",
			`waves: {timeoutSeconds: 86401}`,
			`waves: {timeoutSeconds: 86400}`,
			"waves.timeoutSeconds",
			"should be less than or equal to 86400",
		},
		{
			"an invalid namespace of the executor",
			`executor: {namespace: shop.eu, name: a}`,
			`executor: {namespace: shop, name: a.b}`,
			"executor.namespace",
			"",
		},
		{
			"a namespace of the executor longer than the maximum",
			`executor: {namespace: ` + as(64) + `, name: a}`,
			`executor: {namespace: ` + as(63) + `, name: a}`,
			"executor.namespace",
			"63",
		},
		{
			"an invalid name of the executor",
			`executor: {namespace: shop, name: "system:masters"}`,
			`executor: {namespace: shop, name: masters}`,
			"executor.name",
			"",
		},
		{
			"a name of the executor longer than the maximum",
			`executor: {namespace: shop, name: ` + as(254) + `}`,
			`executor: {namespace: shop, name: ` + as(253) + `}`,
			"executor.name",
			"253",
		},
		{
			"more options than the maximum",
			`manifestOptions: ` + list(201, `{select: {name: "#"}}`),
			`manifestOptions: ` + list(200, `{select: {name: "#"}}`),
			"manifestOptions",
			"must have at most 200 items",
		},

		{
			"an unknown credential type",
			`registration: {credential: Password}`,
			`registration: {credential: Certificate}`,
			"registration.credential",
			`supported values: "Token", "Certificate"`,
		},
		{
			"an expirationSeconds below the minimum",
			`registration: {expirationSeconds: 599}`,
			`registration: {expirationSeconds: 600}`,
			"registration.expirationSeconds",
			"should be greater than or equal to 600",
		},
		{
			"an expirationSeconds above the maximum",
			`registration: {expirationSeconds: 31536001}`,
			`registration: {expirationSeconds: 31536000}`,
			"registration.expirationSeconds",
			"should be less than or equal to 31536000",
		},
		{
			"more rules than the maximum",
			`registration: {rules: ` + list(33, policyRule) + `}`,
			`registration: {rules: ` + list(32, policyRule) + `}`,
			"registration.rules",
			"must have at most 32 items",
		},
		{
			"a rule without verbs",
			`registration: {rules: [{verbs: [], apiGroups: [""], resources: [configmaps]}]}`,
			`registration: {rules: [` + policyRule + `]}`,
			"registration.rules[0].verbs",
			"verbs is required",
		},
		{
			"a rule without API groups",
			`registration: {rules: [{verbs: [get], apiGroups: [], resources: [configmaps]}]}`,
			`registration: {rules: []}`,
			"registration.rules[0].apiGroups",
			"apiGroups is required",
		},
		{
			"a rule without resources",
			`registration: {rules: [{verbs: [get], apiGroups: [""]}]}`,
			`registration: {}`,
			"registration.rules[0].resources",
			"resources is required",
		},
		{
			"a rule with non-resource URLs",
			`registration: {rules: [{verbs: [get], apiGroups: [""], resources: [configmaps], nonResourceURLs: [/metrics]}]}`,
			`registration: {rules: [{verbs: [get], apiGroups: [""], resources: [configmaps], resourceNames: [a], ` +
				`nonResourceURLs: []}]}`,
			"registration.rules[0].nonResourceURLs",
			"nonResourceURLs must not be set in the rules of a namespace",
		},
	},
	textRules(
		"registration.secretName",
		"secretName must be a DNS name",
		253,
		func(text string) string { return `registration: {secretName: ` + text + `}` },
		"Hub",
		"a..b",
		"a/b",
	),
	optionRules(
		rule{
			"an option with an empty selector", `{select: {}}`, `{select: {group: ""}}`, "select",
			"should have at least 1 properties"},
		rule{
			"an option with an unknown mode",
			`{select: {kind: A}, mode: Update}`,
			`{select: {kind: A}, mode: Observe}`,
			"mode",
			`supported values: "ServerSideApply"`,
		},
		rule{
			"an option with an unknown takeover",
			`{select: {kind: A}, takeover: Maybe}`,
			`{select: {kind: A}, takeover: Always}`,
			"takeover",
			`supported values: "Never"`,
		},
		rule{
			"an option with an unknown value of drift",
			`{select: {kind: A}, drift: Maybe}`,
			`{select: {kind: A}, drift: Correct}`,
			"drift",
			`supported values: "Correct"`,
		},
		rule{
			"an option with an unknown value of additions",
			`{select: {kind: A}, additions: Maybe}`,
			`{select: {kind: A}, additions: Keep}`,
			"additions",
			`supported values: "Keep"`,
		},
		rule{
			"an option with an unknown value of recreate",
			`{select: {kind: A}, recreate: Maybe}`, `{select: {kind: A}, recreate: Never}`, "recreate",
			`supported values: "Never"`},
		rule{
			"an option with an unknown value of delete",
			`{select: {kind: A}, delete: Maybe}`,
			`{select: {kind: A}, delete: Orphan}`,
			"delete",
			`supported values: "Delete"`,
		},
		rule{
			"more ignored fields than the maximum",
			`{select: {kind: A}, ignoredFields: ` + list(33, `.data.f#`) + `}`,
			`{select: {kind: A}, ignoredFields: ` + list(32, `.data.f#`) + `}`,
			"ignoredFields",
			"must have at most 32 items",
		},
		rule{
			"an ignored field with an empty path",
			`{select: {kind: A}, ignoredFields: [.]}`,
			`{select: {kind: A}, ignoredFields: [.a]}`,
			"ignoredFields[0]",
			"should be at least 2 chars long",
		},
		rule{
			"a path of an ignored field longer than the maximum",
			`{select: {kind: A}, ignoredFields: [.` + as(512) + `]}`,
			`{select: {kind: A}, ignoredFields: [.` + as(511) + `]}`,
			"ignoredFields[0]",
			"512",
		},
		rule{
			"an empty readiness rule",
			`{select: {kind: A}, readiness: {cel: ""}}`,
			`{select: {kind: A}, readiness: {cel: "true"}}`,
			"readiness.cel",
			"should be at least 1 chars long",
		},
		rule{
			"a readiness rule longer than the maximum",
			`{select: {kind: A}, readiness: {cel: ` + as(2049) + `}}`,
			`{select: {kind: A}, readiness: {cel: ` + as(2048) + `}}`,
			"readiness.cel",
			"2048",
		},
		rule{
			"more feedback values than the maximum",
			`{select: {kind: A}, feedback: ` + list(17, `{name: "a#", jsonPath: .a}`) + `}`,
			`{select: {kind: A}, feedback: ` + list(16, `{name: "a#", jsonPath: .a}`) + `}`,
			"feedback",
			"must have at most 16 items",
		},
		rule{
			"a duplicate name of a feedback value",
			`{select: {kind: A}, feedback: [{name: a, jsonPath: .a}, {name: a, jsonPath: .b}]}`,
			`{select: {kind: A}, feedback: [{name: a, jsonPath: .a}, {name: b, jsonPath: .a}]}`,
			"feedback[1]",
			"Duplicate value",
		},
		rule{
			"an invalid name of a feedback value",
			`{select: {kind: A}, feedback: [{name: two words, jsonPath: .a}]}`,
			`{select: {kind: A}, feedback: [{name: two_words, jsonPath: .a}]}`,
			"feedback[0].name",
			"",
		},
		rule{
			"a name of a feedback value longer than the maximum",
			`{select: {kind: A}, feedback: [{name: ` + as(64) + `, jsonPath: .a}]}`,
			`{select: {kind: A}, feedback: [{name: ` + as(63) + `, jsonPath: .a}]}`,
			"feedback[0].name",
			"63",
		},
		rule{
			"a feedback value with an empty path",
			`{select: {kind: A}, feedback: [{name: a, jsonPath: ""}]}`,
			`{select: {kind: A}, feedback: [{name: a, jsonPath: .}]}`,
			"feedback[0].jsonPath",
			"should be at least 1 chars long",
		},
		rule{
			"a path of a feedback value longer than the maximum",
			`{select: {kind: A}, feedback: [{name: a, jsonPath: ` + as(513) + `}]}`,
			`{select: {kind: A}, feedback: [{name: a, jsonPath: ` + as(512) + `}]}`,
			"feedback[0].jsonPath",
			"512",
		},
		rule{
			"a wave below the minimum",
			`{select: {kind: A}, wave: -101}`,
			`{select: {kind: A}, wave: -100}`,
			"wave",
			"should be greater than or equal to -100",
		},
		rule{
			"a wave above the maximum",
			`{select: {kind: A}, wave: 101}`,
			`{select: {kind: A}, wave: 100}`,
			"wave",
			"should be less than or equal to 100",
		},
	),
)

const policyRule = `{verbs: [get], apiGroups: [""], resources: [configmaps]}`

// optionRules returns rules of the one option of a template.
func optionRules(rules ...rule) []rule {
	for i := range rules {
		rules[i].invalid = `manifestOptions: [` + rules[i].invalid + `]`
		rules[i].valid = `manifestOptions: [` + rules[i].valid + `]`
		rules[i].field = "manifestOptions[0]." + rules[i].field
	}
	return rules
}

var missingOfTemplates = map[string]string{
	"manifests":                           `manifests: null`,
	"executor.name":                       `executor: {namespace: a}`,
	"executor.namespace":                  `executor: {name: a}`,
	"manifestOptions[0].select":           `manifestOptions: [{mode: Observe}]`,
	"manifestOptions[0].select.kind":      `manifestOptions: [{select: {kind: ""}}]`,
	"manifestOptions[0].select.name":      `manifestOptions: [{select: {name: ""}}]`,
	"manifestOptions[0].select.namespace": `manifestOptions: [{select: {namespace: ""}}]`,
	"manifestOptions[0].readiness.cel":    `manifestOptions: [{select: {kind: A}, readiness: {}}]`,
	"manifestOptions[0].feedback[0].name": `manifestOptions: [{select: {kind: A}, feedback: [{jsonPath: .a}]}]`,
	"waves.timeoutSeconds":                `waves: {timeoutSeconds: 0}`,
	"registration.rules[0].verbs":         `registration: {rules: [{apiGroups: [""], resources: [configmaps]}]}`,
}
