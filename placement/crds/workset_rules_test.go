package crds_test

import "slices"

var specRules = []rule{
	{"neither objects nor manifests", `manifests: null`, `manifests: [], resources: [{kind: ConfigMap, name: a}]`, "",
		"resources or manifests is required"},
	{"empty lists of objects and manifests", `manifests: [], resources: []`, `resources: []`, "",
		"resources or manifests is required"},
	{"no placements", `placements: []`, `placements: [{name: a}]`, "placements", "should have at least 1 items"},
	{"too many placements", `placements: ` + list(17, `{name: "p#"}`), `placements: ` +
		list(16, `{name: "p#"}`), "placements", "must have at most 16 items"},
	{"a duplicate placement", `placements: [{name: a}, {name: a}]`,
		`placements: [{name: a}, {name: b}]`, "placements[1]", "Duplicate value"},
	{"a placement without a name", `placements: [{name: ""}]`, `placements: [{name: a}]`, "placements[0].name",
		"should be at least 1 chars long"},
	{"a name of a placement that is too long", `placements: [{name: ` + as(254) + `}]`,
		`placements: [{name: ` + as(253) + `}]`,
		"placements[0].name", "253"},

	{"too many resource selectors", `resources: ` + list(33, `{kind: A}`), `resources: ` + list(32, `{kind: A}`),
		"resources", "must have at most 32 items"},
	{"a group with the version, as in apiVersion", `resources: [{group: apps/v1, kind: Deployment}]`,
		`resources: [{group: apps, version: v1, kind: Deployment}]`, "resources[0].group",
		"group must be the group of an API, such as apps"},
	{"a group that is too long", `resources: [{group: ` + as(254) + `, kind: A}]`, `resources: [{group: ` + as(63) +
		`.example.com, kind: A}]`, "resources[0].group", "253"},
	{"a version that is a number", `resources: [{version: "1", kind: A}]`, `resources: [{version: v1beta1, kind: A}]`,
		"resources[0].version", "version must be the version of an API, such as v1"},
	{"a version that is too long", `resources: [{version: ` + as(64) + `, kind: A}]`,
		`resources: [{version: "", kind: A}]`, "resources[0].version", "63"},
	{"an empty kind", `resources: [{kind: "", name: a}]`, `resources: [{kind: a, name: a}]`, "resources[0].kind",
		"kind must be the kind of an API, such as Deployment"},
	{"a kind with a group, as in kubectl", `resources: [{kind: deployments.apps}]`,
		`resources: [{group: apps, kind: Deployment}]`, "resources[0].kind",
		"kind must be the kind of an API, such as Deployment"},
	{"a name with every kind", `resources: [{kind: "*", name: a}]`, `resources: [{kind: "*", labelSelector: {}}]`,
		"resources[0].kind", "group, version and name must not be set in a selector for all kinds"},
	{"a group with every kind", `resources: [{kind: "*", group: apps}]`, `resources: [{kind: "*", name: ""}]`,
		"resources[0].kind", "group, version and name must not be set in a selector for all kinds"},
	{"a kind that is too long", `resources: [{kind: ` + as(64) + `}]`, `resources: [{kind: ` + as(63) + `}]`,
		"resources[0].kind", "63"},
	{"the namespace *", `resources: [{kind: A, namespace: "*"}]`,
		`resources: [{kind: A, namespace: ""}]`, "resources[0].namespace", "namespace must be the name of a namespace"},
	{"a namespace that is too long", `resources: [{kind: A, namespace: ` + as(64) + `}]`,
		`resources: [{kind: A, namespace: ` + as(63) + `}]`, "resources[0].namespace", "63"},
	{"an object name with a slash", `resources: [{kind: A, name: shop/web}]`,
		`resources: [{kind: A, name: "system:web.EU"}]`, "resources[0].name",
		"name must be the name of an object, without / and %"},
	{"the object name ..", `resources: [{kind: A, name: ..}]`, `resources: [{kind: A, name: a..}]`,
		"resources[0].name", "name must be the name of an object, without / and %"},
	{"an object name that is too long", `resources: [{kind: A, name: ` + as(254) + `}]`, `resources: [{kind: A, name: ` +
		as(253) + `}]`, "resources[0].name", "253"},
	{"a name with a label selector", `resources: [{kind: A, name: a, labelSelector: {}}]`,
		`resources: [{kind: A, labelSelector: {matchLabels: {a: b}}}, {kind: A, name: "", labelSelector: {}}]`,
		"resources[0].labelSelector", "name and labelSelector must not be set together: remove one of them"},

	{"too many manifests", `manifests: ` + list(201, `{apiVersion: v1, kind: Namespace, metadata: {name: "a#"}}`),
		`manifests: ` + list(200, `{apiVersion: v1, kind: Namespace, metadata: {name: "a#"}}`), "manifests",
		"must have at most 200 items"},
	{"a manifest without a name", `manifests: [{apiVersion: v1, kind: Namespace}]`,
		`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a}}]`, "manifests[0]", "metadata.name is required"},
	{"a manifest with generateName",
		`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, generateName: a-}}]`,
		`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, generateName: ""}}]`, "manifests[0]",
		"each apply would create another object"},
	{"a manifest of a Work",
		`manifests: [{apiVersion: work.muster.dev/v1alpha1, kind: Work, metadata: {name: a, namespace: b}}]`,
		`manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}}]`, "manifests[0]",
		"a Work cannot carry objects of work.muster.dev"},
	{"a manifest without a kind", `manifests: [{apiVersion: v1, metadata: {name: a}}]`,
		`manifests: [{apiVersion: v1, kind: A, metadata: {name: a}}]`, "manifests[0].kind", "Required value"},

	{"too many approvals", `approvals: ` + list(65, `{revision: "r#", stage: a, gate: After}`), `approvals: ` +
		list(64, `{revision: "r#", stage: a, gate: After}`), "approvals", "must have at most 64 items"},
	{"a duplicate approval", `approvals: [{revision: r, stage: a, gate: After}, {revision: r, stage: a, gate: After}]`,
		`approvals: [{revision: r, stage: a, gate: After}, {revision: r, stage: a, gate: Before}, {revision: r, stage: b, ` +
			`gate: After}, {revision: s, stage: a, gate: After}]`, "approvals[1]", "Duplicate value"},
	{"an approval without a revision", `approvals: [{revision: "", stage: a, gate: After}]`,
		`approvals: [{revision: r, stage: a, gate: After}]`, "approvals[0].revision", "an approval applies to one revision"},
	{"a revision of an approval that is too long", `approvals: [{revision: ` + as(254) + `, stage: a, gate: After}]`,
		`approvals: [{revision: ` + as(253) + `, stage: a, gate: After}]`, "approvals[0].revision", "253"},
	{"an approval of the stage Remaining", `approvals: [{revision: r, stage: Remaining, gate: After}]`,
		`approvals: [{revision: r, stage: remaining, gate: After}]`, "approvals[0].stage",
		"stage must be the name of a stage"},
	{"a stage of an approval that is too long", `approvals: [{revision: r, stage: ` + as(64) + `, gate: After}]`,
		`approvals: [{revision: r, stage: ` + as(63) + `, gate: After}]`, "approvals[0].stage", "63"},
	{"an unknown gate of an approval", `approvals: [{revision: r, stage: a, gate: Between}]`,
		`approvals: [{revision: r, stage: a, gate: Before}]`, "approvals[0].gate", `supported values: "Before", "After"`},

	{"a pinned revision that is too long", `revision: ` + as(254), `revision: ` + as(253), "revision", "253"},
	{"a negative revisionHistoryLimit", `revisionHistoryLimit: -1`, `revisionHistoryLimit: 0`, "revisionHistoryLimit",
		"should be greater than or equal to 0"},
	{"revisionHistoryLimit above the maximum", `revisionHistoryLimit: 33`, `revisionHistoryLimit: 32`,
		"revisionHistoryLimit",
		"should be less than or equal to 32"},
}

func replicaRules() []rule {
	weight := func(clusters string) string {
		return `replicas: {strategy: StaticWeight, weights: [{weight: 1, clusters: ` + clusters + `}]}`
	}
	objects := func(objects string) string { return `replicas: {strategy: Duplicated, objects: ` + objects + `}` }
	return slices.Concat([]rule{
		{"an unknown replica strategy", `replicas: {strategy: Even}`, `replicas: {strategy: Aggregated}`,
			"replicas.strategy", `supported values: "Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"`},
		{"weights with strategy DynamicWeight",
			`replicas: {strategy: DynamicWeight, weights: [{clusters: {names: [a]}, weight: 1}]}`,
			`replicas: {strategy: DynamicWeight, weights: []}`, "replicas.weights",
			"weights may only be set with strategy StaticWeight"},
		{"weights of 0 only", `replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 0}]}`,
			`replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 0}, {clusters: {names: [b]}, ` +
				`weight: 1}]}`, "replicas.weights", "at least one weight must be greater than 0"},
		{"a negative weight", `replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1}, ` +
			`{clusters: {names: [b]}, weight: -1}]}`, `replicas: {strategy: StaticWeight}`, "replicas.weights[1].weight",
			"should be greater than or equal to 0"},
		{"a weight above the maximum",
			`replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1000001}]}`,
			`replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1000000}]}`,
			"replicas.weights[0].weight", "should be less than or equal to 1000000"},
		{"too many weights", `replicas: {strategy: StaticWeight, weights: ` +
			list(33, `{clusters: {names: [a]}, weight: 1}`) + `}`, `replicas: {strategy: StaticWeight, weights: ` +
			list(32, `{clusters: {names: [a]}, weight: 1}`) + `}`, "replicas.weights", "must have at most 32 items"},
	}, clusterRules("replicas.weights[0].clusters", weight), objectRules("replicas.objects", objects))
}

var workRules = slices.Concat([]rule{
	{"an unknown mode", `work: {apply: {mode: Update}}`, `work: {apply: {mode: CreateOnly}}`, "work.apply.mode",
		`supported values: "ServerSideApply", "CreateOnly", "Observe", "ReportDiff"`},
	{"an unknown takeover", `work: {apply: {takeover: Sometimes}}`, `work: {apply: {takeover: IfNoDiff}}`,
		"work.apply.takeover", `supported values: "Never", "IfNoDiff", "Always"`},
	{"an unknown recreate", `work: {apply: {recreate: Always}}`, `work: {apply: {recreate: IfImmutable}}`,
		"work.apply.recreate", `supported values: "Never", "IfImmutable"`},
	{"an unknown value of additions", `work: {apply: {additions: Undo}}`, `work: {apply: {additions: Remove}}`,
		"work.apply.additions", `supported values: "Keep", "Report", "Remove"`},
	{"an unknown value of drift", `work: {apply: {drift: Undo}}`, `work: {apply: {drift: Report}}`,
		"work.apply.drift", `supported values: "Correct", "Report", "Ignore"`},
	{"a field manager with a trailing space", `work: {apply: {fieldOwner: "me "}}`,
		`work: {apply: {fieldOwner: "me too"}}`, "work.apply.fieldOwner", ""},
	{"a field manager that is too long", `work: {apply: {fieldOwner: ` + as(129) + `}}`, `work: {apply: {fieldOwner: ` +
		as(128) + `}}`, "work.apply.fieldOwner", "128"},
	{"negative timeoutSeconds of waves", `work: {waves: {timeoutSeconds: -1}}`, `work: {waves: {timeoutSeconds: 1}}`,
		"work.waves.timeoutSeconds", "should be greater than or equal to 1"},
	{"timeoutSeconds of waves of more than a day", `work: {waves: {timeoutSeconds: 86401}}`,
		`work: {waves: {timeoutSeconds: 86400}}`,
		"work.waves.timeoutSeconds", "should be less than or equal to 86400"},
	{"an unknown delete action", `work: {delete: {action: Keep}}`, `work: {delete: {action: Orphan}}`,
		"work.delete.action", `supported values: "Delete", "Orphan"`},
	{"the propagation Orphan", `work: {delete: {propagation: Orphan}}`,
		`work: {delete: {propagation: Background}}`, "work.delete.propagation",
		`supported values: "Foreground", "Background"`},
	{"an invalid namespace of the executor", `work: {executor: {namespace: shop.eu, name: a}}`,
		`work: {executor: {namespace: shop, name: a.b}}`, "work.executor.namespace", ""},
	{"a namespace of the executor that is too long", `work: {executor: {namespace: ` + as(64) + `, name: a}}`,
		`work: {executor: {namespace: ` + as(63) + `, name: a}}`, "work.executor.namespace", "63"},
	{"an invalid name of the executor", `work: {executor: {namespace: shop, name: "system:masters"}}`,
		`work: {executor: {namespace: shop, name: masters}}`, "work.executor.name", ""},
	{"a name of the executor that is too long", `work: {executor: {namespace: shop, name: ` + as(254) + `}}`,
		`work: {executor: {namespace: shop, name: ` + as(253) + `}}`, "work.executor.name", "253"},
	{"too many manifestOptions", `work: {manifestOptions: ` + list(201, `{select: {name: "#"}}`) + `}`,
		`work: {manifestOptions: ` + list(200, `{select: {name: "#"}}`) + `}`, "work.manifestOptions",
		"must have at most 200 items"},
}, optionRules(
	rule{"an option with an empty selector", `{select: {}}`, `{select: {group: ""}}`, "select",
		"should have at least 1 properties"},
	rule{"an unknown mode of an option", `{select: {kind: A}, mode: Update}`, `{select: {kind: A}, mode: Observe}`, "mode",
		`supported values: "ServerSideApply"`},
	rule{"an unknown takeover of an option", `{select: {kind: A}, takeover: Maybe}`,
		`{select: {kind: A}, takeover: Always}`, "takeover",
		`supported values: "Never"`},
	rule{"an unknown drift of an option", `{select: {kind: A}, drift: Maybe}`, `{select: {kind: A}, drift: Correct}`,
		"drift",
		`supported values: "Correct"`},
	rule{"an unknown additions of an option", `{select: {kind: A}, additions: Maybe}`,
		`{select: {kind: A}, additions: Keep}`,
		"additions",
		`supported values: "Keep"`},
	rule{"an unknown recreate of an option", `{select: {kind: A}, recreate: Maybe}`,
		`{select: {kind: A}, recreate: Never}`, "recreate",
		`supported values: "Never"`},
	rule{"an unknown delete of an option", `{select: {kind: A}, delete: Maybe}`, `{select: {kind: A}, delete: Orphan}`,
		"delete",
		`supported values: "Delete"`},
	rule{"too many ignoredFields", `{select: {kind: A}, ignoredFields: ` + list(33, `.data.f#`) + `}`,
		`{select: {kind: A}, ignoredFields: ` + list(32, `.data.f#`) + `}`, "ignoredFields", "must have at most 32 items"},
	rule{"an empty path in ignoredFields", `{select: {kind: A}, ignoredFields: [.]}`,
		`{select: {kind: A}, ignoredFields: [.a]}`, "ignoredFields[0]", "should be at least 2 chars long"},
	rule{"a path in ignoredFields that is too long", `{select: {kind: A}, ignoredFields: [.` + as(512) + `]}`,
		`{select: {kind: A}, ignoredFields: [.` + as(511) + `]}`, "ignoredFields[0]", "512"},
	rule{"an empty readiness rule", `{select: {kind: A}, readiness: {cel: ""}}`,
		`{select: {kind: A}, readiness: {cel: "true"}}`,
		"readiness.cel", "should be at least 1 chars long"},
	rule{"a readiness rule that is too long", `{select: {kind: A}, readiness: {cel: ` + as(2049) + `}}`,
		`{select: {kind: A}, readiness: {cel: ` + as(2048) + `}}`, "readiness.cel", "2048"},
	rule{"too many feedback values", `{select: {kind: A}, feedback: ` +
		list(17, `{name: "a#", jsonPath: .a}`) + `}`, `{select: {kind: A}, feedback: ` +
		list(16, `{name: "a#", jsonPath: .a}`) + `}`, "feedback", "must have at most 16 items"},
	rule{"two feedback values with the same name",
		`{select: {kind: A}, feedback: [{name: a, jsonPath: .a}, {name: a, jsonPath: .b}]}`,
		`{select: {kind: A}, feedback: [{name: a, jsonPath: .a}, {name: b, jsonPath: .a}]}`, "feedback[1]",
		"Duplicate value"},
	rule{"a feedback name with a space", `{select: {kind: A}, feedback: [{name: two words, jsonPath: .a}]}`,
		`{select: {kind: A}, feedback: [{name: two_words, jsonPath: .a}]}`, "feedback[0].name", ""},
	rule{"a feedback name that is too long", `{select: {kind: A}, feedback: [{name: ` + as(64) + `, jsonPath: .a}]}`,
		`{select: {kind: A}, feedback: [{name: ` + as(63) + `, jsonPath: .a}]}`, "feedback[0].name", "63"},
	rule{"an empty jsonPath", `{select: {kind: A}, feedback: [{name: a, jsonPath: ""}]}`,
		`{select: {kind: A}, feedback: [{name: a, jsonPath: .}]}`, "feedback[0].jsonPath", "should be at least 1 chars long"},
	rule{"a jsonPath that is too long", `{select: {kind: A}, feedback: [{name: a, jsonPath: ` + as(513) + `}]}`,
		`{select: {kind: A}, feedback: [{name: a, jsonPath: ` + as(512) + `}]}`, "feedback[0].jsonPath", "512"},
	rule{"a wave below the minimum", `{select: {kind: A}, wave: -101}`, `{select: {kind: A}, wave: -100}`, "wave",
		"should be greater than or equal to -100"},
	rule{"a wave above the maximum", `{select: {kind: A}, wave: 101}`, `{select: {kind: A}, wave: 100}`, "wave",
		"should be less than or equal to 100"},
))

// optionRules returns the rules of the single option of a WorkSet.
func optionRules(rules ...rule) []rule {
	for i := range rules {
		rules[i].wrong = `work: {manifestOptions: [` + rules[i].wrong + `]}`
		rules[i].right = `work: {manifestOptions: [` + rules[i].right + `]}`
		rules[i].field = "work.manifestOptions[0]." + rules[i].field
	}
	return rules
}
