package crds_test

import "slices"

// The rules for the parts of a WorkSet: overrides, selectors and rollouts.

// clusterRules returns the rules of a ClusterSelector. The function in inserts it into a part of a spec.
func clusterRules(field string, in func(selector string) string) []rule {
	return []rule{
		{"an empty cluster selector", in(`{}`), in(`{names: [east]}`), field,
			"an empty selector matches every cluster: give it names, a labelSelector or cel, or remove it"},
		{"a cluster selector in which each field is empty",
			in(`{names: [], cel: [], labelSelector: {matchLabels: {}, matchExpressions: []}}`),
			in(`{names: [], labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}`), field, "an empty selector"},
		{"an invalid cluster name", in(`{names: [west, East]}`), in(`{names: [west, east]}`), field + ".names[1]", ""},
		{"a cluster name that is too long", in(`{names: [` + as(64) + `]}`), in(`{names: [` + as(63) + `]}`),
			field + ".names[0]",
			"63"},
		{"a duplicate cluster name", in(`{names: [east, west, east]}`), in(`{names: [east, west]}`), field + ".names[2]",
			`Duplicate value: "east"`},
		{"too many cluster names", in(`{names: ` + list(1001, "c#") + `}`), in(`{names: ` + list(1000, "c#") + `}`),
			field + ".names", "must have at most 1000 items"},
		{"too many CEL expressions", in(`{cel: ` + list(9, `"true"`) + `}`), in(`{cel: ` + list(8, `"true"`) + `}`),
			field + ".cel", "must have at most 8 items"},
		{"an empty CEL expression", in(`{cel: [""]}`), in(`{cel: ["true"]}`), field + ".cel[0]", ""},
		{"a CEL expression that is too long", in(`{cel: [` + as(1025) + `]}`), in(`{cel: [` + as(1024) + `]}`),
			field + ".cel[0]",
			"1024"},
	}
}

// objectRules returns the rules of a list of ObjectSelectors. The function in inserts it into a part of a spec.
func objectRules(field string, in func(selectors string) string) []rule {
	return []rule{
		{"an empty object selector", in(`[{}]`), in(`[{group: ""}]`), field + "[0]", "should have at least 1 properties"},
		{"too many object selectors", in(list(17, `{kind: A}`)), in(list(16, `{kind: A}`)), field,
			"must have at most 16 items"},
		{"a group that is too long", in(`[{group: ` + as(254) + `}]`), in(`[{group: ` + as(253) + `}]`), field + "[0].group",
			"253"},
		{"a kind that is too long", in(`[{kind: ` + as(64) + `}]`), in(`[{kind: ` + as(63) + `}]`), field + "[0].kind", "63"},
		{"a namespace that is too long", in(`[{namespace: ` + as(64) + `}]`), in(`[{namespace: ` + as(63) + `}]`),
			field + "[0].namespace", "63"},
		{"an object name that is too long", in(`[{name: ` + as(254) + `}]`), in(`[{name: ` + as(253) + `}]`),
			field + "[0].name", "253"},
	}
}

func overrideRules() []rule {
	one := func(fields string) string { return `overrides: {rules: [{` + fields + `}]}` }
	patch := func(operation string) string { return one(`jsonPatch: [` + operation + `]`) }
	const at, op = "overrides.rules[0]", "overrides.rules[0].jsonPatch[0]"
	const identity = "must not be, contain or be within apiVersion, kind, status, or the name, namespace, generateName " +
		"or ownerReferences of metadata"
	return slices.Concat([]rule{
		{"too many override rules", `overrides: {rules: ` + list(65, `{mergePatch: {}}`) + `}`, `overrides: {rules: ` +
			list(64, `{mergePatch: {}}`) + `}`, "overrides.rules", "must have at most 64 items"},
		{"a rule without patches and delete", one(`jsonPatch: [], delete: false`), one(`mergePatch: {}`), at,
			"a rule requires jsonPatch, mergePatch or delete"},
		{"delete with a patch", one(`delete: true, objects: [{kind: A}], mergePatch: {}`),
			one(`delete: false, objects: [{kind: A}], mergePatch: {}`), at + ".delete",
			"patches must not be set with delete"},
		{"delete without objects", one(`delete: true`), one(`delete: true, objects: [{kind: A}]`), at + ".objects",
			"objects is required with delete"},
		{"too many cluster selectors", one(`mergePatch: {}, clusters: ` + list(17, `{names: [a]}`)),
			one(`mergePatch: {}, clusters: ` + list(16, `{names: [a]}`)), at + ".clusters", "must have at most 16 items"},
		{"too many patch operations", one(`jsonPatch: ` + list(65, `{op: remove, path: /a}`)),
			one(`jsonPatch: ` + list(64, `{op: remove, path: /a}`)), at + ".jsonPatch", "must have at most 64 items"},
		{"an unknown patch operation", patch(`{op: merge, path: /a}`), patch(`{op: remove, path: /a}`), op + ".op",
			`supported values: "add"`},
		{"a path that is not a JSON pointer", patch(`{op: remove, path: .spec.a}`), patch(`{op: remove, path: /spec/a~1b~0}`),
			op + ".path", ""},
		{"a path that is too long", patch(`{op: remove, path: /` + as(1024) + `}`),
			patch(`{op: remove, path: /` + as(1023) + `}`), op + ".path", "1024"},
		{"a from that is not a JSON pointer", patch(`{op: copy, path: /a, from: a}`),
			patch(`{op: copy, path: /a, from: /a/b}`),
			op + ".from", ""},
		{"a from that is too long", patch(`{op: copy, path: /a, from: /` + as(1024) + `}`),
			patch(`{op: copy, path: /a, from: /` + as(1023) + `}`), op + ".from", "1024"},
		{"copy without from", patch(`{op: copy, path: /a}`), patch(`{op: copy, path: /a, from: /b}`), op + ".from",
			"from is required with move and copy"},
		{"remove with from", patch(`{op: remove, path: /a, from: /b}`), patch(`{op: remove, path: /a}`), op + ".from",
			"must not be set with another op"},
		{"a patch of the whole object", patch(`{op: add, path: "", value: {}}`), patch(`{op: test, path: "", value: {}}`),
			op + ".path", identity},
		{"a patch of the name", patch(`{op: add, path: /metadata/name, value: a}`),
			patch(`{op: add, path: /metadata/names, value: a}`), op + ".path", identity},
		{"a move of the name", patch(`{op: move, path: /a, from: /metadata/name}`),
			patch(`{op: copy, path: /a, from: /metadata/name}`), op + ".from", identity},
	},
		clusterRules(at+".clusters[0]", func(selector string) string {
			return one(`mergePatch: {}, clusters: [` + selector + `]`)
		}),
		objectRules(at+".objects", func(selectors string) string { return one(`mergePatch: {}, objects: ` + selectors) }),
	)
}

var rolloutRules = slices.Concat([]rule{
	{"an unknown rollout type", `rollout: {type: Some}`, `rollout: {type: Progressive}`, "rollout.type",
		`supported values: "All", "Progressive", "ProgressivePerGroup", "Stages"`},
	{"maxConcurrency with type All", `rollout: {maxConcurrency: 1}`,
		`rollout: {type: Progressive, maxConcurrency: 1}`, "rollout.maxConcurrency",
		"remove maxConcurrency, or set the type to Progressive"},
	{"negative maxFailures", `rollout: {maxFailures: -1}`, `rollout: {maxFailures: 0}`, "rollout.maxFailures",
		"maxFailures must be a number from 0, or a percentage from 0% to 100%"},
	{"maxFailures above 100%", `rollout: {maxFailures: "101%"}`, `rollout: {maxFailures: "100%"}`,
		"rollout.maxFailures", ""},
	{"maxFailures as a number in a string", `rollout: {maxFailures: "5"}`, `rollout: {maxFailures: "0%"}`,
		"rollout.maxFailures", ""},
	{"negative minSuccessSeconds", `rollout: {minSuccessSeconds: -1}`, `rollout: {minSuccessSeconds: 0}`,
		"rollout.minSuccessSeconds", "minSuccessSeconds must be from 0 to 31536000"},
	{"minSuccessSeconds of more than a year", `rollout: {minSuccessSeconds: 31536001}`,
		`rollout: {minSuccessSeconds: 31536000}`,
		"rollout.minSuccessSeconds", "minSuccessSeconds must be from 0 to 31536000"},
	{"negative progressDeadlineSeconds", `rollout: {progressDeadlineSeconds: -1}`, `rollout: {progressDeadlineSeconds: 1}`,
		"rollout.progressDeadlineSeconds", "progressDeadlineSeconds must be from 1 to 31536000"},
	{"progressDeadlineSeconds of more than a year", `rollout: {progressDeadlineSeconds: 31536001}`,
		`rollout: {progressDeadlineSeconds: 31536000}`, "rollout.progressDeadlineSeconds",
		"progressDeadlineSeconds must be from 1 to 31536000"},
	{"an unknown onFailure", `rollout: {onFailure: Shrug}`, `rollout: {onFailure: RollBack}`, "rollout.onFailure",
		`supported values: "Halt", "RollBack"`},
	{"an unknown state", `rollout: {state: Walk}`, `rollout: {state: Stop}`, "rollout.state",
		`supported values: "Run", "Pause", "Stop"`},
	{"mandatoryGroups with another type", `rollout: {mandatoryGroups: [{name: a}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: a}, {index: 0}]}`, "rollout.mandatoryGroups",
		"mandatoryGroups may only be set with type ProgressivePerGroup"},
	{"too many mandatoryGroups", `rollout: {type: ProgressivePerGroup, mandatoryGroups: ` + list(33, `{index: #}`) + `}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: ` + list(32, `{index: #}`) + `}`, "rollout.mandatoryGroups",
		"must have at most 32 items"},
	{"a mandatory group without name and index", `rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: ""}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: "", index: 1}]}`, "rollout.mandatoryGroups[0]",
		"a group must be named by either name or index"},
	{"a mandatory group with name and index",
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: a, index: 1}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: []}`, "rollout.mandatoryGroups[0]",
		"a group must be named by either name or index"},
	{"a name of a mandatory group that is too long",
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: ` + as(64) + `}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: ` + as(63) + `}]}`, "rollout.mandatoryGroups[0].name",
		"63"},
	{"a negative index of a mandatory group", `rollout: {type: ProgressivePerGroup, mandatoryGroups: [{index: -1}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{index: 0}]}`, "rollout.mandatoryGroups[0].index",
		"index must not be negative"},
	{"stages with another type", `rollout: {stages: [{name: a}]}`, `rollout: {stages: []}`, "rollout.stages",
		"stages may only be set with type Stages"},
	{"type Stages without stages", `rollout: {type: Stages, stages: []}`, `rollout: {type: Stages, stages: [{name: a}]}`,
		"rollout.stages", "stages is required with type Stages"},
	{"too many stages", `rollout: {type: Stages, stages: ` + list(33, `{name: "s#"}`) + `}`,
		`rollout: {type: Stages, stages: ` + list(32, `{name: "s#"}`) + `}`, "rollout.stages", "must have at most 32 items"},
	{"two stages with the same name", `rollout: {type: Stages, stages: [{name: a}, {name: a}]}`,
		`rollout: {type: Stages, stages: [{name: a}, {name: b}]}`, "rollout.stages[1]", "Duplicate value"},
},
	shareRules("rollout.maxConcurrency", "maxConcurrency", func(share string) string {
		return `rollout: {type: Progressive, maxConcurrency: ` + share + `}`
	}),
	shareRules("rollout.stages[0].maxConcurrency", "maxConcurrency", func(share string) string {
		return stage(`name: a, maxConcurrency: ` + share)
	}),
	[]rule{
		{"the stage name Remaining, which the status uses", stage(`name: Remaining`), stage(`name: remaining`),
			"rollout.stages[0].name", "the name of a stage must be a DNS label"},
		{"a stage name that is too long", stage(`name: ` + as(64)), stage(`name: ` + as(63)), "rollout.stages[0].name", "63"},
		{"an orderBy that is too long", stage(`name: a, orderBy: ` + as(318)),
			stage(`name: a, orderBy: example.com/wave`), "rollout.stages[0].orderBy", "317"},
		{"a negative waitSeconds before a stage", stage(`name: a, before: {waitSeconds: -1}`),
			stage(`name: a, before: {waitSeconds: 0, approval: true}`), "rollout.stages[0].before.waitSeconds",
			"waitSeconds must be from 0 to 31536000"},
		{"a waitSeconds after a stage of more than a year", stage(`name: a, after: {waitSeconds: 31536001}`),
			stage(`name: a, after: {waitSeconds: 31536000}`), "rollout.stages[0].after.waitSeconds",
			"waitSeconds must be from 0 to 31536000"},
	},
)

func stage(fields string) string { return `rollout: {type: Stages, stages: [{` + fields + `}]}` }

// shareRules returns the rules of a number or a percentage of clusters that is at least one.
func shareRules(field, name string, in func(share string) string) []rule {
	message := name + " must be a number from 1, or a percentage from 1% to 100%"
	return []rule{
		{"the number 0", in(`0`), in(`1`), field, message},
		{"a negative number", in(`-1`), in(`2147483647`), field, message},
		{"the percentage 0%", in(`"0%"`), in(`"1%"`), field, ""},
		{"a percentage above 100%", in(`"101%"`), in(`"100%"`), field, ""},
		{"a number in a string", in(`"5"`), in(`"5%"`), field, ""},
		{"a percentage with a sign", in(`"+5%"`), in(`"99%"`), field, ""},
		{"a fraction of a percent", in(`"0.5%"`), in(`"10%"`), field, ""},
		{"a percentage with a leading zero", in(`"05%"`), in(`"50%"`), field, ""},
	}
}
