package crds_test

import "slices"

var specRules = []rule{
	{"neither objects nor manifests", `manifests: null`, `manifests: [], resources: [{kind: ConfigMap, name: a}]`, "",
		"resources or manifests is required"},
	{"empty lists are nothing, too", `manifests: [], resources: []`, `resources: []`, "",
		"resources or manifests is required"},
	{"nowhere to go", `placements: []`, `placements: [{name: a}]`, "placements", "should have at least 1 items"},
	{"more placements than anybody can follow", `placements: ` + list(17, `{name: "p#"}`), `placements: ` +
		list(16, `{name: "p#"}`), "placements", "must have at most 16 items"},
	{"one placement twice is a mistake in one of them", `placements: [{name: a}, {name: a}]`,
		`placements: [{name: a}, {name: b}]`, "placements[1]", "Duplicate value"},
	{"a placement without a name", `placements: [{name: ""}]`, `placements: [{name: a}]`, "placements[0].name",
		"should be at least 1 chars long"},
	{"a name that none can have", `placements: [{name: ` + as(254) + `}]`, `placements: [{name: ` + as(253) + `}]`,
		"placements[0].name", "253"},

	{"more selectors than may be", `resources: ` + list(33, `{kind: A}`), `resources: ` + list(32, `{kind: A}`),
		"resources", "must have at most 32 items"},
	{"a group with the version, as in apiVersion", `resources: [{group: apps/v1, kind: Deployment}]`,
		`resources: [{group: apps, version: v1, kind: Deployment}]`, "resources[0].group",
		"group must be the group of an API, such as apps"},
	{"a group that none can be", `resources: [{group: ` + as(254) + `, kind: A}]`, `resources: [{group: ` + as(63) +
		`.example.com, kind: A}]`, "resources[0].group", "253"},
	{"a version that is a number", `resources: [{version: "1", kind: A}]`, `resources: [{version: v1beta1, kind: A}]`,
		"resources[0].version", "version must be the version of an API, such as v1"},
	{"a version that none can be", `resources: [{version: ` + as(64) + `, kind: A}]`,
		`resources: [{version: "", kind: A}]`, "resources[0].version", "63"},
	{"no kind", `resources: [{kind: "", name: a}]`, `resources: [{kind: a, name: a}]`, "resources[0].kind",
		"kind must be the kind of an API, such as Deployment"},
	{"a kind with its group, as kubectl takes it", `resources: [{kind: deployments.apps}]`,
		`resources: [{group: apps, kind: Deployment}]`, "resources[0].kind",
		"kind must be the kind of an API, such as Deployment"},
	{"every kind is without a name", `resources: [{kind: "*", name: a}]`, `resources: [{kind: "*", labelSelector: {}}]`,
		"resources[0].kind", "group, version and name must not be set in a selector for all kinds"},
	{"every kind is of every group", `resources: [{kind: "*", group: apps}]`, `resources: [{kind: "*", name: ""}]`,
		"resources[0].kind", "group, version and name must not be set in a selector for all kinds"},
	{"a kind that none can be", `resources: [{kind: ` + as(64) + `}]`, `resources: [{kind: ` + as(63) + `}]`,
		"resources[0].kind", "63"},
	{"all namespaces cannot be selected at once", `resources: [{kind: A, namespace: "*"}]`,
		`resources: [{kind: A, namespace: ""}]`, "resources[0].namespace", "namespace must be the name of a namespace"},
	{"a namespace that none can be", `resources: [{kind: A, namespace: ` + as(64) + `}]`,
		`resources: [{kind: A, namespace: ` + as(63) + `}]`, "resources[0].namespace", "63"},
	{"a name with a namespace before it", `resources: [{kind: A, name: shop/web}]`,
		`resources: [{kind: A, name: "system:web.EU"}]`, "resources[0].name",
		"name must be the name of an object, without / and %"},
	{"a name that leads elsewhere", `resources: [{kind: A, name: ..}]`, `resources: [{kind: A, name: a..}]`,
		"resources[0].name", "name must be the name of an object, without / and %"},
	{"a name that none can have here", `resources: [{kind: A, name: ` + as(254) + `}]`, `resources: [{kind: A, name: ` +
		as(253) + `}]`, "resources[0].name", "253"},
	{"who is named needs no labels", `resources: [{kind: A, name: a, labelSelector: {}}]`,
		`resources: [{kind: A, labelSelector: {matchLabels: {a: b}}}, {kind: A, name: "", labelSelector: {}}]`,
		"resources[0].labelSelector", "name and labelSelector must not be set together: remove one of them"},

	{"more manifests than may be", `manifests: ` + list(201, `{apiVersion: v1, kind: Namespace, metadata: {name: "a#"}}`),
		`manifests: ` + list(200, `{apiVersion: v1, kind: Namespace, metadata: {name: "a#"}}`), "manifests",
		"must have at most 200 items"},
	{"an object without a name", `manifests: [{apiVersion: v1, kind: Namespace}]`,
		`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a}}]`, "manifests[0]", "metadata.name is required"},
	{"another object each time", `manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, generateName: a-}}]`,
		`manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: a, generateName: ""}}]`, "manifests[0]",
		"each apply would create another object"},
	{"Works of Works",
		`manifests: [{apiVersion: work.muster.dev/v1alpha1, kind: Work, metadata: {name: a, namespace: b}}]`,
		`manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}}]`, "manifests[0]",
		"a Work cannot carry objects of work.muster.dev"},
	{"an object of no kind", `manifests: [{apiVersion: v1, metadata: {name: a}}]`,
		`manifests: [{apiVersion: v1, kind: A, metadata: {name: a}}]`, "manifests[0].kind", "Required value"},

	{"more approvals than may be", `approvals: ` + list(65, `{revision: "r#", stage: a, gate: After}`), `approvals: ` +
		list(64, `{revision: "r#", stage: a, gate: After}`), "approvals", "must have at most 64 items"},
	{"an approval twice", `approvals: [{revision: r, stage: a, gate: After}, {revision: r, stage: a, gate: After}]`,
		`approvals: [{revision: r, stage: a, gate: After}, {revision: r, stage: a, gate: Before}, {revision: r, stage: b, ` +
			`gate: After}, {revision: s, stage: a, gate: After}]`, "approvals[1]", "Duplicate value"},
	{"an approval of whatever comes", `approvals: [{revision: "", stage: a, gate: After}]`,
		`approvals: [{revision: r, stage: a, gate: After}]`, "approvals[0].revision", "an approval applies to one revision"},
	{"a revision that none can be", `approvals: [{revision: ` + as(254) + `, stage: a, gate: After}]`,
		`approvals: [{revision: ` + as(253) + `, stage: a, gate: After}]`, "approvals[0].revision", "253"},
	{"a stage that has no gates", `approvals: [{revision: r, stage: Remaining, gate: After}]`,
		`approvals: [{revision: r, stage: remaining, gate: After}]`, "approvals[0].stage",
		"stage must be the name of a stage"},
	{"a stage that none can be", `approvals: [{revision: r, stage: ` + as(64) + `, gate: After}]`,
		`approvals: [{revision: r, stage: ` + as(63) + `, gate: After}]`, "approvals[0].stage", "63"},
	{"a gate that no stage has", `approvals: [{revision: r, stage: a, gate: Between}]`,
		`approvals: [{revision: r, stage: a, gate: Before}]`, "approvals[0].gate", `supported values: "Before", "After"`},

	{"a revision to hold that none can be", `revision: ` + as(254), `revision: ` + as(253), "revision", "253"},
	{"fewer than no history", `revisionHistoryLimit: -1`, `revisionHistoryLimit: 0`, "revisionHistoryLimit",
		"should be greater than or equal to 0"},
	{"all of history", `revisionHistoryLimit: 33`, `revisionHistoryLimit: 32`, "revisionHistoryLimit",
		"should be less than or equal to 32"},
}

func replicaRules() []rule {
	weight := func(clusters string) string {
		return `replicas: {strategy: StaticWeight, weights: [{weight: 1, clusters: ` + clusters + `}]}`
	}
	objects := func(objects string) string { return `replicas: {strategy: Duplicated, objects: ` + objects + `}` }
	return slices.Concat([]rule{
		{"a strategy that does not exist", `replicas: {strategy: Even}`, `replicas: {strategy: Aggregated}`,
			"replicas.strategy", `supported values: "Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"`},
		{"weights that nobody would heed",
			`replicas: {strategy: DynamicWeight, weights: [{clusters: {names: [a]}, weight: 1}]}`,
			`replicas: {strategy: DynamicWeight, weights: []}`, "replicas.weights",
			"weights may only be set with strategy StaticWeight"},
		{"weights that place nothing", `replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 0}]}`,
			`replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 0}, {clusters: {names: [b]}, ` +
				`weight: 1}]}`, "replicas.weights", "at least one weight must be greater than 0"},
		{"less than nothing", `replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1}, ` +
			`{clusters: {names: [b]}, weight: -1}]}`, `replicas: {strategy: StaticWeight}`, "replicas.weights[1].weight",
			"should be greater than or equal to 0"},
		{"more than may be", `replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1000001}]}`,
			`replicas: {strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1000000}]}`,
			"replicas.weights[0].weight", "should be less than or equal to 1000000"},
		{"more weights than may be", `replicas: {strategy: StaticWeight, weights: ` +
			list(33, `{clusters: {names: [a]}, weight: 1}`) + `}`, `replicas: {strategy: StaticWeight, weights: ` +
			list(32, `{clusters: {names: [a]}, weight: 1}`) + `}`, "replicas.weights", "must have at most 32 items"},
	}, clusterRules("replicas.weights[0].clusters", weight), objectRules("replicas.objects", objects))
}

var workRules = slices.Concat([]rule{
	{"a mode that does not exist", `work: {apply: {mode: Update}}`, `work: {apply: {mode: CreateOnly}}`, "work.apply.mode",
		`supported values: "ServerSideApply", "CreateOnly", "Observe", "ReportDiff"`},
	{"a takeover that does not exist", `work: {apply: {takeover: Sometimes}}`, `work: {apply: {takeover: IfNoDiff}}`,
		"work.apply.takeover", `supported values: "Never", "IfNoDiff", "Always"`},
	{"a recreation that does not exist", `work: {apply: {recreate: Always}}`, `work: {apply: {recreate: IfImmutable}}`,
		"work.apply.recreate", `supported values: "Never", "IfImmutable"`},
	{"a way with additions that does not exist", `work: {apply: {additions: Undo}}`, `work: {apply: {additions: Remove}}`,
		"work.apply.additions", `supported values: "Keep", "Report", "Remove"`},
	{"a way with drift that does not exist", `work: {apply: {drift: Undo}}`, `work: {apply: {drift: Report}}`,
		"work.apply.drift", `supported values: "Correct", "Report", "Ignore"`},
	{"a field manager that looks like another one", `work: {apply: {fieldOwner: "me "}}`,
		`work: {apply: {fieldOwner: "me too"}}`, "work.apply.fieldOwner", ""},
	{"a field manager that none can be", `work: {apply: {fieldOwner: ` + as(129) + `}}`, `work: {apply: {fieldOwner: ` +
		as(128) + `}}`, "work.apply.fieldOwner", "128"},
	{"no time to become ready", `work: {waves: {timeoutSeconds: -1}}`, `work: {waves: {timeoutSeconds: 1}}`,
		"work.waves.timeoutSeconds", "should be greater than or equal to 1"},
	{"longer than a day", `work: {waves: {timeoutSeconds: 86401}}`, `work: {waves: {timeoutSeconds: 86400}}`,
		"work.waves.timeoutSeconds", "should be less than or equal to 86400"},
	{"an end that does not exist", `work: {delete: {action: Keep}}`, `work: {delete: {action: Orphan}}`,
		"work.delete.action", `supported values: "Delete", "Orphan"`},
	{"orphaned dependents would be nobody's", `work: {delete: {propagation: Orphan}}`,
		`work: {delete: {propagation: Background}}`, "work.delete.propagation",
		`supported values: "Foreground", "Background"`},
	{"no such namespace can be", `work: {executor: {namespace: shop.eu, name: a}}`,
		`work: {executor: {namespace: shop, name: a.b}}`, "work.executor.namespace", ""},
	{"nor one of such a length", `work: {executor: {namespace: ` + as(64) + `, name: a}}`,
		`work: {executor: {namespace: ` + as(63) + `, name: a}}`, "work.executor.namespace", "63"},
	{"no such ServiceAccount can be", `work: {executor: {namespace: shop, name: "system:masters"}}`,
		`work: {executor: {namespace: shop, name: masters}}`, "work.executor.name", ""},
	{"nor one with such a name", `work: {executor: {namespace: shop, name: ` + as(254) + `}}`,
		`work: {executor: {namespace: shop, name: ` + as(253) + `}}`, "work.executor.name", "253"},
	{"more options than a Work may have", `work: {manifestOptions: ` + list(201, `{select: {name: "#"}}`) + `}`,
		`work: {manifestOptions: ` + list(200, `{select: {name: "#"}}`) + `}`, "work.manifestOptions",
		"must have at most 200 items"},
}, optionRules(
	rule{"an option for all", `{select: {}}`, `{select: {group: ""}}`, "select", "should have at least 1 properties"},
	rule{"another mode", `{select: {kind: A}, mode: Update}`, `{select: {kind: A}, mode: Observe}`, "mode",
		`supported values: "ServerSideApply"`},
	rule{"another takeover", `{select: {kind: A}, takeover: Maybe}`, `{select: {kind: A}, takeover: Always}`, "takeover",
		`supported values: "Never"`},
	rule{"another way with drift", `{select: {kind: A}, drift: Maybe}`, `{select: {kind: A}, drift: Correct}`, "drift",
		`supported values: "Correct"`},
	rule{"another way with additions", `{select: {kind: A}, additions: Maybe}`, `{select: {kind: A}, additions: Keep}`,
		"additions",
		`supported values: "Keep"`},
	rule{"another recreation", `{select: {kind: A}, recreate: Maybe}`, `{select: {kind: A}, recreate: Never}`, "recreate",
		`supported values: "Never"`},
	rule{"another end", `{select: {kind: A}, delete: Maybe}`, `{select: {kind: A}, delete: Orphan}`, "delete",
		`supported values: "Delete"`},
	rule{"more fields than may be ignored", `{select: {kind: A}, ignoredFields: ` + list(33, `.data.f#`) + `}`,
		`{select: {kind: A}, ignoredFields: ` + list(32, `.data.f#`) + `}`, "ignoredFields", "must have at most 32 items"},
	rule{"a path that leads nowhere", `{select: {kind: A}, ignoredFields: [.]}`,
		`{select: {kind: A}, ignoredFields: [.a]}`, "ignoredFields[0]", "should be at least 2 chars long"},
	rule{"a path without an end", `{select: {kind: A}, ignoredFields: [.` + as(512) + `]}`,
		`{select: {kind: A}, ignoredFields: [.` + as(511) + `]}`, "ignoredFields[0]", "512"},
	rule{"an empty rule", `{select: {kind: A}, readiness: {cel: ""}}`, `{select: {kind: A}, readiness: {cel: "true"}}`,
		"readiness.cel", "should be at least 1 chars long"},
	rule{"a program instead of a rule", `{select: {kind: A}, readiness: {cel: ` + as(2049) + `}}`,
		`{select: {kind: A}, readiness: {cel: ` + as(2048) + `}}`, "readiness.cel", "2048"},
	rule{"more values than a status has room for", `{select: {kind: A}, feedback: ` +
		list(17, `{name: "a#", jsonPath: .a}`) + `}`, `{select: {kind: A}, feedback: ` +
		list(16, `{name: "a#", jsonPath: .a}`) + `}`, "feedback", "must have at most 16 items"},
	rule{"two values of one name", `{select: {kind: A}, feedback: [{name: a, jsonPath: .a}, {name: a, jsonPath: .b}]}`,
		`{select: {kind: A}, feedback: [{name: a, jsonPath: .a}, {name: b, jsonPath: .a}]}`, "feedback[1]",
		"Duplicate value"},
	rule{"a name that would not fit into a column", `{select: {kind: A}, feedback: [{name: two words, jsonPath: .a}]}`,
		`{select: {kind: A}, feedback: [{name: two_words, jsonPath: .a}]}`, "feedback[0].name", ""},
	rule{"a name that is too long", `{select: {kind: A}, feedback: [{name: ` + as(64) + `, jsonPath: .a}]}`,
		`{select: {kind: A}, feedback: [{name: ` + as(63) + `, jsonPath: .a}]}`, "feedback[0].name", "63"},
	rule{"a value of nothing", `{select: {kind: A}, feedback: [{name: a, jsonPath: ""}]}`,
		`{select: {kind: A}, feedback: [{name: a, jsonPath: .}]}`, "feedback[0].jsonPath", "should be at least 1 chars long"},
	rule{"a value without an end", `{select: {kind: A}, feedback: [{name: a, jsonPath: ` + as(513) + `}]}`,
		`{select: {kind: A}, feedback: [{name: a, jsonPath: ` + as(512) + `}]}`, "feedback[0].jsonPath", "512"},
	rule{"a wave before all", `{select: {kind: A}, wave: -101}`, `{select: {kind: A}, wave: -100}`, "wave",
		"should be greater than or equal to -100"},
	rule{"a wave after all", `{select: {kind: A}, wave: 101}`, `{select: {kind: A}, wave: 100}`, "wave",
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
