package crds_test

import "slices"

// The rules of a rollout and its approvals. They are those of a WorkSet, except that an add-on cannot be rolled back.

// rolloutRules returns the rules of a RolloutStrategy, of which in makes a part of a spec.
func rolloutRules(at string, in func(rollout string) string) []rule {
	stage := func(fields string) string { return `{type: Stages, stages: [{` + fields + `}]}` }
	rules := slices.Concat(
		[]rule{
			{
				"an unknown rollout type",
				`{type: Some}`,
				`{type: Progressive}`,
				".type",
				`supported values: "All", "Progressive", "ProgressivePerGroup", "Stages"`,
			},
			{
				"maxConcurrency with type All",
				`{maxConcurrency: 1}`,
				`{type: Progressive, maxConcurrency: 1}`,
				".maxConcurrency",
				"remove maxConcurrency, or set the type to Progressive",
			},
			{
				"a negative maxFailures",
				`{maxFailures: -1}`,
				`{maxFailures: 0}`,
				".maxFailures",
				"maxFailures must be a number from 0, or a percentage from 0% to 100%",
			},
			{"a percentage of maxFailures above 100%", `{maxFailures: "101%"}`, `{maxFailures: "100%"}`, ".maxFailures", ""},
			{"a number of maxFailures as a string", `{maxFailures: "5"}`, `{maxFailures: "0%"}`, ".maxFailures", ""},
			{
				"a negative minSuccessSeconds",
				`{minSuccessSeconds: -1}`,
				`{minSuccessSeconds: 0}`,
				".minSuccessSeconds",
				"minSuccessSeconds must be from 0 to 31536000",
			},
			{
				"a minSuccessSeconds above the maximum",
				`{minSuccessSeconds: 31536001}`,
				`{minSuccessSeconds: 31536000}`,
				".minSuccessSeconds",
				"minSuccessSeconds must be from 0 to 31536000",
			},
			{
				"a negative progressDeadlineSeconds",
				`{progressDeadlineSeconds: -1}`,
				`{progressDeadlineSeconds: 1}`,
				".progressDeadlineSeconds",
				"progressDeadlineSeconds must be from 1 to 31536000",
			},
			{
				"a progressDeadlineSeconds above the maximum",
				`{progressDeadlineSeconds: 31536001}`,
				`{progressDeadlineSeconds: 31536000}`,
				".progressDeadlineSeconds",
				"progressDeadlineSeconds must be from 1 to 31536000",
			},
			{"an unknown action on failure",
				`{onFailure: Shrug}`, `{onFailure: Halt}`, ".onFailure", `supported values: "Halt", "RollBack"`},
			{
				"an action that add-ons do not support",
				`{onFailure: RollBack}`,
				`{onFailure: Halt}`,
				".onFailure",
				"the rollout of an add-on cannot be rolled back",
			},
			{"an unknown state", `{state: Walk}`, `{state: Stop}`, ".state", `supported values: "Run", "Pause", "Stop"`},
			{
				"mandatory groups with type All",
				`{mandatoryGroups: [{name: a}]}`,
				`{type: ProgressivePerGroup, mandatoryGroups: [{name: a}, {index: 0}]}`,
				".mandatoryGroups",
				"mandatoryGroups may only be set with type ProgressivePerGroup",
			},
			{
				"more mandatory groups than the maximum",
				`{type: ProgressivePerGroup, mandatoryGroups: ` + list(33, `{index: #}`) + `}`,
				`{type: ProgressivePerGroup, mandatoryGroups: ` + list(32, `{index: #}`) + `}`,
				".mandatoryGroups",
				"must have at most 32 items",
			},
			{
				"a group without a name and an index",
				`{type: ProgressivePerGroup, mandatoryGroups: [{name: ""}]}`,
				`{type: ProgressivePerGroup, mandatoryGroups: [{name: "", index: 1}]}`,
				".mandatoryGroups[0]",
				"a group must be named by either name or index",
			},
			{
				"a group with a name and an index",
				`{type: ProgressivePerGroup, mandatoryGroups: [{name: a, index: 1}]}`,
				`{type: ProgressivePerGroup, mandatoryGroups: []}`,
				".mandatoryGroups[0]",
				"a group must be named by either name or index",
			},
			{
				"a group name longer than the maximum",
				`{type: ProgressivePerGroup, mandatoryGroups: [{name: ` + as(64) + `}]}`,
				`{type: ProgressivePerGroup, mandatoryGroups: [{name: ` + as(63) + `}]}`,
				".mandatoryGroups[0].name",
				"63",
			},
			{
				"a negative index of a group",
				`{type: ProgressivePerGroup, mandatoryGroups: [{index: -1}]}`,
				`{type: ProgressivePerGroup, mandatoryGroups: [{index: 0}]}`,
				".mandatoryGroups[0].index",
				"index must not be negative",
			},
			{"stages with type All", `{stages: [{name: a}]}`, `{stages: []}`, ".stages",
				"stages may only be set with type Stages"},
			{
				"type Stages without stages",
				`{type: Stages, stages: []}`,
				`{type: Stages, stages: [{name: a}]}`,
				".stages",
				"stages is required with type Stages",
			},
			{
				"more stages than the maximum",
				`{type: Stages, stages: ` + list(33, `{name: "s#"}`) + `}`,
				`{type: Stages, stages: ` + list(32, `{name: "s#"}`) + `}`,
				".stages",
				"must have at most 32 items",
			},
			{
				"a duplicate stage name",
				`{type: Stages, stages: [{name: a}, {name: a}]}`,
				`{type: Stages, stages: [{name: a}, {name: b}]}`,
				".stages[1]",
				"Duplicate value",
			},
		},
		shareRules(
			".maxConcurrency",
			"maxConcurrency",
			func(share string) string { return `{type: Progressive, maxConcurrency: ` + share + `}` },
		),
		shareRules(
			".stages[0].maxConcurrency",
			"maxConcurrency",
			func(share string) string { return stage(`name: a, maxConcurrency: ` + share) },
		),
		[]rule{
			{
				"the reserved stage name Remaining",
				stage(`name: Remaining`),
				stage(`name: remaining`),
				".stages[0].name",
				"the name of a stage must be a DNS label",
			},
			{"a stage name longer than the maximum",
				stage(`name: ` + as(64)), stage(`name: ` + as(63)), ".stages[0].name", "63"},
			{
				"an orderBy longer than the maximum",
				stage(`name: a, orderBy: ` + as(318)),
				stage(`name: a, orderBy: example.com/wave`),
				".stages[0].orderBy",
				"317",
			},
			{
				"a negative waitSeconds",
				stage(`name: a, before: {waitSeconds: -1}`),
				stage(`name: a, before: {waitSeconds: 0, approval: true}`),
				".stages[0].before.waitSeconds",
				"waitSeconds must be from 0 to 31536000",
			},
			{
				"a waitSeconds above the maximum",
				stage(`name: a, after: {waitSeconds: 31536001}`),
				stage(`name: a, after: {waitSeconds: 31536000}`),
				".stages[0].after.waitSeconds",
				"waitSeconds must be from 0 to 31536000",
			},
		},
	)
	for i := range rules {
		rules[i].invalid, rules[i].valid, rules[i].field = in(rules[i].invalid), in(rules[i].valid), at+rules[i].field
	}
	return rules
}

// shareRules returns the rules of a number or a percentage of clusters that is at least one.
func shareRules(field, name string, in func(share string) string) []rule {
	message := name + " must be a number from 1, or a percentage from 1% to 100%"
	return []rule{
		{name + " of 0", in(`0`), in(`1`), field, message},
		{"a negative " + name, in(`-1`), in(`2147483647`), field, message},
		{name + " of 0%", in(`"0%"`), in(`"1%"`), field, ""},
		{name + " above 100%", in(`"101%"`), in(`"100%"`), field, ""},
		{"a number of " + name + " as a string", in(`"5"`), in(`"5%"`), field, ""},
		{"a percentage of " + name + " with a sign", in(`"+5%"`), in(`"99%"`), field, ""},
		{"a fractional percentage of " + name, in(`"0.5%"`), in(`"10%"`), field, ""},
		{"a percentage of " + name + " with a leading zero", in(`"05%"`), in(`"50%"`), field, ""},
	}
}

func approvalRules(at string, in func(approvals string) string) []rule {
	return []rule{
		{
			"more approvals than the maximum",
			in(list(65, `{revision: "r#", stage: a, gate: After}`)),
			in(list(64, `{revision: "r#", stage: a, gate: After}`)),
			at,
			"must have at most 64 items",
		},
		{
			"a duplicate approval",
			in(`[{revision: r, stage: a, gate: After}, {revision: r, stage: a, gate: After}]`),
			in(
				`[{revision: r, stage: a, gate: After}, {revision: r, stage: a, gate: Before}, {revision: r, stage: b, ` +
					`gate: After}, {revision: s, stage: a, gate: After}]`,
			),
			at + "[1]",
			"Duplicate value",
		},
		{
			"an approval without a revision",
			in(`[{revision: "", stage: a, gate: After}]`),
			in(`[{revision: r, stage: a, gate: After}]`),
			at + "[0].revision",
			"an approval applies to one revision",
		},
		{
			"a revision longer than the maximum",
			in(`[{revision: ` + as(254) + `, stage: a, gate: After}]`),
			in(`[{revision: ` + as(253) + `, stage: a, gate: After}]`),
			at + "[0].revision",
			"253",
		},
		{
			"an approval for the stage Remaining",
			in(`[{revision: r, stage: Remaining, gate: After}]`),
			in(`[{revision: r, stage: remaining, gate: After}]`),
			at + "[0].stage",
			"stage must be the name of a stage",
		},
		{
			"a stage name of an approval longer than the maximum",
			in(`[{revision: r, stage: ` + as(64) + `, gate: After}]`),
			in(`[{revision: r, stage: ` + as(63) + `, gate: After}]`),
			at + "[0].stage",
			"63",
		},
		{
			"an unknown gate",
			in(`[{revision: r, stage: a, gate: Between}]`),
			in(`[{revision: r, stage: a, gate: Before}]`),
			at + "[0].gate",
			`supported values: "Before", "After"`,
		},
	}
}
