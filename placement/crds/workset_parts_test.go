package crds_test

import "slices"

// The rules for the parts of a WorkSet: overrides, selectors and rollouts.

// clusterRules returns the rules of a ClusterSelector. The function in inserts it into a part of a spec.
func clusterRules(field string, in func(selector string) string) []rule {
	return []rule{
		{"no cluster in particular", in(`{}`), in(`{names: [east]}`), field,
			"an empty selector matches every cluster: give it names, a labelSelector or cel, or remove it"},
		{"parts that select nothing", in(`{names: [], cel: [], labelSelector: {matchLabels: {}, matchExpressions: []}}`),
			in(`{names: [], labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}`), field, "an empty selector"},
		{"no name of a cluster", in(`{names: [west, East]}`), in(`{names: [west, east]}`), field + ".names[1]", ""},
		{"a name that is too long", in(`{names: [` + as(64) + `]}`), in(`{names: [` + as(63) + `]}`), field + ".names[0]",
			"63"},
		{"one cluster twice", in(`{names: [east, west, east]}`), in(`{names: [east, west]}`), field + ".names[2]",
			`Duplicate value: "east"`},
		{"too many to name", in(`{names: ` + list(1001, "c#") + `}`), in(`{names: ` + list(1000, "c#") + `}`),
			field + ".names", "must have at most 1000 items"},
		{"too many expressions", in(`{cel: ` + list(9, `"true"`) + `}`), in(`{cel: ` + list(8, `"true"`) + `}`),
			field + ".cel", "must have at most 8 items"},
		{"an expression that says nothing", in(`{cel: [""]}`), in(`{cel: ["true"]}`), field + ".cel[0]", ""},
		{"an expression without an end", in(`{cel: [` + as(1025) + `]}`), in(`{cel: [` + as(1024) + `]}`), field + ".cel[0]",
			"1024"},
	}
}

// objectRules returns the rules of a list of ObjectSelectors. The function in inserts it into a part of a spec.
func objectRules(field string, in func(selectors string) string) []rule {
	return []rule{
		{"no object in particular", in(`[{}]`), in(`[{group: ""}]`), field + "[0]", "should have at least 1 properties"},
		{"too many selectors of objects", in(list(17, `{kind: A}`)), in(list(16, `{kind: A}`)), field,
			"must have at most 16 items"},
		{"no such group", in(`[{group: ` + as(254) + `}]`), in(`[{group: ` + as(253) + `}]`), field + "[0].group", "253"},
		{"no such kind", in(`[{kind: ` + as(64) + `}]`), in(`[{kind: ` + as(63) + `}]`), field + "[0].kind", "63"},
		{"no such namespace", in(`[{namespace: ` + as(64) + `}]`), in(`[{namespace: ` + as(63) + `}]`),
			field + "[0].namespace", "63"},
		{"no such name", in(`[{name: ` + as(254) + `}]`), in(`[{name: ` + as(253) + `}]`), field + "[0].name", "253"},
	}
}

func overrideRules() []rule {
	one := func(fields string) string { return `overrides: {rules: [{` + fields + `}]}` }
	patch := func(operation string) string { return one(`jsonPatch: [` + operation + `]`) }
	const at, op = "overrides.rules[0]", "overrides.rules[0].jsonPatch[0]"
	const identity = "must not be, contain or be within apiVersion, kind, status, or the name, namespace, generateName " +
		"or ownerReferences of metadata"
	return slices.Concat([]rule{
		{"more rules than may be", `overrides: {rules: ` + list(65, `{mergePatch: {}}`) + `}`, `overrides: {rules: ` +
			list(64, `{mergePatch: {}}`) + `}`, "overrides.rules", "must have at most 64 items"},
		{"a rule that does nothing", one(`jsonPatch: [], delete: false`), one(`mergePatch: {}`), at,
			"a rule requires jsonPatch, mergePatch or delete"},
		{"deleted and patched", one(`delete: true, objects: [{kind: A}], mergePatch: {}`),
			one(`delete: false, objects: [{kind: A}], mergePatch: {}`), at + ".delete",
			"patches must not be set with delete"},
		{"everything deleted", one(`delete: true`), one(`delete: true, objects: [{kind: A}]`), at + ".objects",
			"objects is required with delete"},
		{"too many selectors of clusters", one(`mergePatch: {}, clusters: ` + list(17, `{names: [a]}`)),
			one(`mergePatch: {}, clusters: ` + list(16, `{names: [a]}`)), at + ".clusters", "must have at most 16 items"},
		{"too many operations", one(`jsonPatch: ` + list(65, `{op: remove, path: /a}`)),
			one(`jsonPatch: ` + list(64, `{op: remove, path: /a}`)), at + ".jsonPatch", "must have at most 64 items"},
		{"no such operation", patch(`{op: merge, path: /a}`), patch(`{op: remove, path: /a}`), op + ".op",
			`supported values: "add"`},
		{"a path of another kind", patch(`{op: remove, path: .spec.a}`), patch(`{op: remove, path: /spec/a~1b~0}`),
			op + ".path", ""},
		{"a path without an end", patch(`{op: remove, path: /` + as(1024) + `}`),
			patch(`{op: remove, path: /` + as(1023) + `}`), op + ".path", "1024"},
		{"a source of another kind", patch(`{op: copy, path: /a, from: a}`), patch(`{op: copy, path: /a, from: /a/b}`),
			op + ".from", ""},
		{"a source without an end", patch(`{op: copy, path: /a, from: /` + as(1024) + `}`),
			patch(`{op: copy, path: /a, from: /` + as(1023) + `}`), op + ".from", "1024"},
		{"copied from nowhere", patch(`{op: copy, path: /a}`), patch(`{op: copy, path: /a, from: /b}`), op + ".from",
			"from is required with move and copy"},
		{"removed from elsewhere", patch(`{op: remove, path: /a, from: /b}`), patch(`{op: remove, path: /a}`), op + ".from",
			"must not be set with another op"},
		{"a patch of the whole object", patch(`{op: add, path: "", value: {}}`), patch(`{op: test, path: "", value: {}}`),
			op + ".path", identity},
		{"a patch of the name", patch(`{op: add, path: /metadata/name, value: a}`),
			patch(`{op: add, path: /metadata/names, value: a}`), op + ".path", identity},
		{"the name moved away", patch(`{op: move, path: /a, from: /metadata/name}`),
			patch(`{op: copy, path: /a, from: /metadata/name}`), op + ".from", identity},
	},
		clusterRules(at+".clusters[0]", func(selector string) string {
			return one(`mergePatch: {}, clusters: [` + selector + `]`)
		}),
		objectRules(at+".objects", func(selectors string) string { return one(`mergePatch: {}, objects: ` + selectors) }),
	)
}

var rolloutRules = slices.Concat([]rule{
	{"a type that does not exist", `rollout: {type: Some}`, `rollout: {type: Progressive}`, "rollout.type",
		`supported values: "All", "Progressive", "ProgressivePerGroup", "Stages"`},
	{"all at once is not some at a time", `rollout: {maxConcurrency: 1}`,
		`rollout: {type: Progressive, maxConcurrency: 1}`, "rollout.maxConcurrency",
		"remove maxConcurrency, or set the type to Progressive"},
	{"no failure is fewer than none", `rollout: {maxFailures: -1}`, `rollout: {maxFailures: 0}`, "rollout.maxFailures",
		"maxFailures must be a number from 0, or a percentage from 0% to 100%"},
	{"more failures than all", `rollout: {maxFailures: "101%"}`, `rollout: {maxFailures: "100%"}`,
		"rollout.maxFailures", ""},
	{"a number as a text", `rollout: {maxFailures: "5"}`, `rollout: {maxFailures: "0%"}`, "rollout.maxFailures", ""},
	{"a soak that began before", `rollout: {minSuccessSeconds: -1}`, `rollout: {minSuccessSeconds: 0}`,
		"rollout.minSuccessSeconds", "minSuccessSeconds must be from 0 to 31536000"},
	{"a soak of more than a year", `rollout: {minSuccessSeconds: 31536001}`, `rollout: {minSuccessSeconds: 31536000}`,
		"rollout.minSuccessSeconds", "minSuccessSeconds must be from 0 to 31536000"},
	{"no time to fail in", `rollout: {progressDeadlineSeconds: -1}`, `rollout: {progressDeadlineSeconds: 1}`,
		"rollout.progressDeadlineSeconds", "progressDeadlineSeconds must be from 1 to 31536000"},
	{"too much time to fail in", `rollout: {progressDeadlineSeconds: 31536001}`,
		`rollout: {progressDeadlineSeconds: 31536000}`, "rollout.progressDeadlineSeconds",
		"progressDeadlineSeconds must be from 1 to 31536000"},
	{"another action", `rollout: {onFailure: Shrug}`, `rollout: {onFailure: RollBack}`, "rollout.onFailure",
		`supported values: "Halt", "RollBack"`},
	{"another state", `rollout: {state: Walk}`, `rollout: {state: Stop}`, "rollout.state",
		`supported values: "Run", "Pause", "Stop"`},
	{"groups of another type", `rollout: {mandatoryGroups: [{name: a}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: a}, {index: 0}]}`, "rollout.mandatoryGroups",
		"mandatoryGroups may only be set with type ProgressivePerGroup"},
	{"too many groups", `rollout: {type: ProgressivePerGroup, mandatoryGroups: ` + list(33, `{index: #}`) + `}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: ` + list(32, `{index: #}`) + `}`, "rollout.mandatoryGroups",
		"must have at most 32 items"},
	{"a group by nothing", `rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: ""}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: "", index: 1}]}`, "rollout.mandatoryGroups[0]",
		"a group must be named by either name or index"},
	{"a group by both", `rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: a, index: 1}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: []}`, "rollout.mandatoryGroups[0]",
		"a group must be named by either name or index"},
	{"a group that none can be", `rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: ` + as(64) + `}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{name: ` + as(63) + `}]}`, "rollout.mandatoryGroups[0].name",
		"63"},
	{"a group before the first", `rollout: {type: ProgressivePerGroup, mandatoryGroups: [{index: -1}]}`,
		`rollout: {type: ProgressivePerGroup, mandatoryGroups: [{index: 0}]}`, "rollout.mandatoryGroups[0].index",
		"index must not be negative"},
	{"stages of another type", `rollout: {stages: [{name: a}]}`, `rollout: {stages: []}`, "rollout.stages",
		"stages may only be set with type Stages"},
	{"stages without one", `rollout: {type: Stages, stages: []}`, `rollout: {type: Stages, stages: [{name: a}]}`,
		"rollout.stages", "stages is required with type Stages"},
	{"too many stages", `rollout: {type: Stages, stages: ` + list(33, `{name: "s#"}`) + `}`,
		`rollout: {type: Stages, stages: ` + list(32, `{name: "s#"}`) + `}`, "rollout.stages", "must have at most 32 items"},
	{"two stages of one name", `rollout: {type: Stages, stages: [{name: a}, {name: a}]}`,
		`rollout: {type: Stages, stages: [{name: a}, {name: b}]}`, "rollout.stages[1]", "Duplicate value"},
},
	shareRules("rollout.maxConcurrency", "maxConcurrency", func(share string) string {
		return `rollout: {type: Progressive, maxConcurrency: ` + share + `}`
	}),
	shareRules("rollout.stages[0].maxConcurrency", "maxConcurrency", func(share string) string {
		return stage(`name: a, maxConcurrency: ` + share)
	}),
	[]rule{
		{"a name that the status has for others", stage(`name: Remaining`), stage(`name: remaining`),
			"rollout.stages[0].name", "the name of a stage must be a DNS label"},
		{"a name that is too long", stage(`name: ` + as(64)), stage(`name: ` + as(63)), "rollout.stages[0].name", "63"},
		{"an order by what no label can be", stage(`name: a, orderBy: ` + as(318)),
			stage(`name: a, orderBy: example.com/wave`), "rollout.stages[0].orderBy", "317"},
		{"a wait that is over", stage(`name: a, before: {waitSeconds: -1}`),
			stage(`name: a, before: {waitSeconds: 0, approval: true}`), "rollout.stages[0].before.waitSeconds",
			"waitSeconds must be from 0 to 31536000"},
		{"a wait that never is", stage(`name: a, after: {waitSeconds: 31536001}`),
			stage(`name: a, after: {waitSeconds: 31536000}`), "rollout.stages[0].after.waitSeconds",
			"waitSeconds must be from 0 to 31536000"},
	},
)

func stage(fields string) string { return `rollout: {type: Stages, stages: [{` + fields + `}]}` }

// shareRules returns the rules of a number or a percentage of clusters that is at least one.
func shareRules(field, name string, in func(share string) string) []rule {
	said := name + " must be a number from 1, or a percentage from 1% to 100%"
	return []rule{
		{"none at a time would never end", in(`0`), in(`1`), field, said},
		{"nor would fewer", in(`-1`), in(`2147483647`), field, said},
		{"nothing of all would never end", in(`"0%"`), in(`"1%"`), field, ""},
		{"more than all", in(`"101%"`), in(`"100%"`), field, ""},
		{"a number as a text is neither", in(`"5"`), in(`"5%"`), field, ""},
		{"no sign", in(`"+5%"`), in(`"99%"`), field, ""},
		{"no fraction", in(`"0.5%"`), in(`"10%"`), field, ""},
		{"a percentage with a leading zero", in(`"05%"`), in(`"50%"`), field, ""},
	}
}
