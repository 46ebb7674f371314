package crds_test

import (
	"slices"
	"strings"
)

// textRules returns the rules of a text with a form and a length.
func textRules(name, message string, limit int, in func(text string) string, invalid ...string) []rule {
	rules := []rule{{name + " longer than the maximum", in(as(limit + 1)), in(as(limit)), name, ""}}
	for _, text := range invalid {
		rules = append(rules, rule{name + " with an invalid value: " + text, in(text), in("a"), name, message})
	}
	return rules
}

// referenceRules returns the rules of a list of configurations, of which in makes a part of a spec.
func referenceRules(at string, in func(configs string) string) []rule {
	one := func(fields string) string { return in(`[{` + fields + `}]`) }
	const config, template = `group: addon.muster.dev, resource: addonconfigs`,
		`group: addon.muster.dev, resource: addontemplates`
	named := func(i string) string { return `{` + config + `, namespace: fleet, name: ` + i + `}` }
	return slices.Concat([]rule{
		{
			"more configurations than the maximum",
			in(list(33, named(`"c#"`))),
			in(list(32, named(`"c#"`))),
			at,
			"must have at most 32 items",
		},
		{
			"two templates",
			in(`[{` + template + `, name: a}, {` + template + `, name: b}]`),
			in(`[{` + template + `, name: a}, ` + named("b") + `]`),
			at,
			"an add-on must have at most one AddonTemplate: remove the others",
		},
		{
			"an AddonConfig without a namespace",
			one(config + `, name: a`),
			one(config + `, namespace: fleet, name: a`),
			at + "[0].namespace",
			"namespace is required for an AddonConfig",
		},
		{
			"an AddonTemplate with a namespace",
			one(template + `, namespace: fleet, name: a`),
			one(template + `, namespace: "", name: a`),
			at + "[0].namespace",
			"namespace must not be set for an AddonTemplate, which is cluster-scoped",
		},
	},
		textRules(at+"[0].group", "group must be the group of an API", 253, func(group string) string {
			if group == "a" {
				return one(config + `, namespace: fleet, name: a`)
			}
			return one(`group: ` + group + `, resource: configmaps, name: a`)
		}, "apps/v1", "Apps"),
		textRules(at+"[0].resource", "resource must be the plural name of a kind", 63, func(resource string) string {
			if resource == "a" {
				return one(`resource: configmaps, name: a`)
			}
			return one(`resource: ` + resource + `, name: a`)
		}, `""`, "ConfigMap", "configmaps/v1"),
		objectNameRules(at+"[0]", func(fields string) string { return one(`resource: configmaps, ` + fields) }),
	)
}

// objectNameRules returns the rules of an ObjectName.
func objectNameRules(at string, in func(fields string) string) []rule {
	return slices.Concat(
		textRules(
			at+".namespace",
			"namespace must be the name of a namespace",
			63,
			func(text string) string { return in(`name: a, namespace: ` + text) },
			"Fleet",
			"a.b",
			`"*"`,
		),
		textRules(
			at+".name",
			"name must be the name of an object, without / and %",
			253,
			func(text string) string { return in(`name: ` + text) },
			`""`,
			"a/b",
			"a%b",
			".",
			"..",
		),
	)
}

// configKinds are the kinds of the configurations of [referenceRules].
var configKinds = `configs: [{group: addon.muster.dev, resource: addonconfigs}, {group: addon.muster.dev, ` +
	`resource: addontemplates}, {resource: configmaps}, {group: ` + as(
	253,
) + `, resource: configmaps}, {resource: ` + as(
	63,
) + `}]`

// placed returns an Addon that is installed on the clusters of a Placement.
func placed(fields string) string {
	return configKinds + `, hostingMembers: [hub, ` + as(
		63,
	) + `], install: {type: Placements, placements: [{namespace: fleet, name: all, ` + fields + `}]}`
}

func addonRules() []rule {
	one := func(fields string) string { return `configs: [{` + fields + `}]` }
	placement := func(fields string) string { return `install: {type: Placements, placements: [` + fields + `]}` }
	const at = "install.placements[0]"
	const config, template = `group: addon.muster.dev, resource: addonconfigs`,
		`group: addon.muster.dev, resource: addontemplates`
	return slices.Concat(
		[]rule{
			{
				"a display name longer than the maximum",
				`displayName: ` + as(129),
				`displayName: ` + as(128),
				"displayName",
				"128",
			},
			{
				"a description longer than the maximum",
				`description: ` + as(1025),
				`description: ` + as(1024),
				"description",
				"1024",
			},
			{
				"more hosting members than the maximum",
				`hostingMembers: ` + list(65, `"m#"`),
				`hostingMembers: ` + list(64, `"m#"`),
				"hostingMembers",
				"must have at most 64 items",
			},
			{
				"a duplicate hosting member",
				`hostingMembers: [a, b, a]`,
				`hostingMembers: [a, b]`,
				"hostingMembers[2]",
				`Duplicate value: "a"`,
			},
			{
				"an invalid name of a hosting member",
				`hostingMembers: [Hub]`,
				`hostingMembers: [hub]`,
				"hostingMembers[0]",
				"the name of a member must be a DNS label",
			},
			{
				"a name of a hosting member longer than the maximum",
				`hostingMembers: [` + as(64) + `]`,
				`hostingMembers: [` + as(63) + `]`,
				"hostingMembers[0]",
				"63",
			},

			{
				"more kinds than the maximum",
				`configs: ` + list(17, `{resource: "k#"}`),
				`configs: ` + list(16, `{resource: "k#"}`),
				"configs",
				"must have at most 16 items",
			},
			{
				"a duplicate kind",
				`configs: [{group: a, resource: b}, {group: a, resource: b}]`,
				`configs: [{group: a, resource: b}, {resource: b}, {group: a, resource: c}]`,
				"configs[1]",
				"Duplicate value",
			},
			{
				"more defaults than the maximum",
				one(`resource: a, defaults: ` + list(9, `{name: "a#"}`)),
				one(`resource: a, defaults: ` + list(8, `{name: "a#"}`)),
				"configs[0].defaults",
				"must have at most 8 items",
			},
			{
				"an AddonConfig without a namespace",
				one(config + `, defaults: [{namespace: fleet, name: a}, {name: a}]`),
				one(config + `, defaults: [{namespace: fleet, name: a}]`),
				"configs[0].defaults",
				"namespace is required for an AddonConfig",
			},
			{
				"an AddonTemplate with a namespace",
				one(template + `, defaults: [{namespace: fleet, name: a}]`),
				one(template + `, defaults: [{name: a}]`),
				"configs[0].defaults",
				"namespace must not be set for an AddonTemplate, which is cluster-scoped",
			},
			{
				"two templates",
				one(template + `, defaults: [{name: a}, {name: b}]`),
				one(config + `, defaults: [{namespace: fleet, name: a}, {namespace: fleet, name: b}]`),
				"configs[0].defaults",
				"an add-on must have at most one AddonTemplate: remove the others",
			},

			{
				"an unknown install type",
				`install: {type: Everywhere}`,
				`install: {type: Manual}`,
				"install.type",
				`supported values: "Manual", "Placements"`,
			},
			{
				"placements with type Manual",
				`install: {placements: [{namespace: a, name: b}]}`,
				`install: {type: Manual, placements: []}`,
				"install.placements",
				"placements may only be set with type Placements",
			},
			{
				"type Placements without placements",
				`install: {type: Placements, placements: []}`,
				placement(`{namespace: a, name: b}`),
				"install.placements",
				"placements is required with type Placements",
			},
			{
				"more placements than the maximum",
				`install: {type: Placements, placements: ` + list(17, `{namespace: a, name: "p#"}`) + `}`,
				`install: {type: Placements, placements: ` + list(16, `{namespace: a, name: "p#"}`) + `}`,
				"install.placements",
				"must have at most 16 items",
			},
			{
				"a duplicate placement",
				placement(`{namespace: a, name: b}, {namespace: a, name: b}`),
				placement(`{namespace: a, name: b}, {namespace: b, name: b}`),
				"install.placements[1]",
				"Duplicate value",
			},
			{
				"a config of an undeclared kind",
				configKinds + `, install: {type: Placements, placements: [{namespace: a, name: b, configs: [{resource: secrets, ` +
					`namespace: a, name: b}]}]}`,
				placed(`configs: [{group: "", resource: configmaps, name: b}]`),
				"install.placements",
				"the kinds of all configs must be among spec.configs",
			},
			{
				"a config of an undeclared group",
				placed(`configs: [{group: apps, resource: configmaps, name: b}]`),
				placed(`configs: [{resource: configmaps, name: b}]`),
				"install.placements",
				"the kinds of all configs must be among spec.configs",
			},
			{
				"a config of an add-on without kinds",
				placement(`{namespace: a, name: b, configs: [{resource: configmaps, name: b}]}`),
				placement(`{namespace: a, name: b, configs: []}`),
				"install.placements",
				"the kinds of all configs must be among spec.configs",
			},
			{
				"an undeclared hosting member",
				placed(`hostingMember: east`),
				placed(`hostingMember: hub`),
				"install.placements",
				"each hostingMember must be among spec.hostingMembers",
			},
			{
				"an undeclared hosting member with a name of the maximum length",
				placed(`hostingMember: ` + strings.Repeat("b", 63)),
				placed(`hostingMember: ` + as(63)),
				"install.placements",
				"each hostingMember must be among spec.hostingMembers",
			},
			{
				"a hosting member of an add-on without hosting members",
				placement(`{namespace: a, name: b, hostingMember: hub}`),
				placement(`{namespace: a, name: b, hostingMember: ""}`),
				"install.placements",
				"each hostingMember must be among spec.hostingMembers",
			},
			{
				"a name of the hosting member of a placement longer than the maximum",
				placed(`hostingMember: ` + as(64)),
				placed(`hostingMember: ` + as(63)),
				at + ".hostingMember",
				"63",
			},

			{
				"an unknown health type",
				`health: {type: Smile}`,
				`health: {type: Workloads}`,
				"health.type",
				`supported values: "Works", "Workloads", "Lease", "Custom", "None"`,
			},
			{
				"a lease duration without type Lease",
				`health: {leaseDurationSeconds: 60}`,
				`health: {type: Lease, leaseDurationSeconds: 60}`,
				"health.leaseDurationSeconds",
				"leaseDurationSeconds may only be set with type Lease",
			},
			{
				"a lease duration below the minimum",
				`health: {type: Lease, leaseDurationSeconds: 4}`,
				`health: {type: Lease, leaseDurationSeconds: 5}`,
				"health.leaseDurationSeconds",
				"should be greater than or equal to 5",
			},
			{
				"a lease duration above the maximum",
				`health: {type: Lease, leaseDurationSeconds: 86401}`,
				`health: {type: Lease, leaseDurationSeconds: 86400}`,
				"health.leaseDurationSeconds",
				"should be less than or equal to 86400",
			},
			{
				"a removal deadline below the minimum",
				`removal: {deadlineSeconds: 9}`,
				`removal: {deadlineSeconds: 10}`,
				"removal.deadlineSeconds",
				"should be greater than or equal to 10",
			},
			{
				"a removal deadline above the maximum",
				`removal: {deadlineSeconds: 86401}`,
				`removal: {deadlineSeconds: 86400}`,
				"removal.deadlineSeconds",
				"should be less than or equal to 86400",
			},
		},
		textRules(
			"installNamespace",
			"installNamespace must be the name of a namespace",
			63,
			func(text string) string { return `installNamespace: ` + text },
			"Addons",
			"a.b",
			"-a",
		),
		textRules(
			"configs[0].group",
			"group must be the group of an API",
			253,
			func(text string) string { return one(`resource: a, group: ` + text) },
			"apps/v1",
			"Apps",
		),
		textRules(
			"configs[0].resource",
			"resource must be the plural name of a kind",
			63,
			func(text string) string { return one(`resource: ` + text) },
			`""`,
			"ConfigMap",
			"a.b",
		),
		objectNameRules(
			"configs[0].defaults[0]",
			func(fields string) string { return one(`resource: a, defaults: [{` + fields + `}]`) },
		),
		textRules(
			at+".namespace",
			"namespace must be the namespace of a Placement, or empty for a ClusterPlacement",
			63,
			func(text string) string { return placement(`{name: a, namespace: ` + text + `}`) },
			"Fleet",
			"a.b",
		),
		textRules(
			at+".name",
			"name must be the name of a Placement",
			253,
			func(text string) string { return placement(`{namespace: a, name: ` + text + `}`) },
			`""`,
			"a/b",
			".",
			"..",
		),
		referenceRules(at+".configs", func(configs string) string { return placed(`configs: ` + configs) }),
		rolloutRules(at+".rollout", func(rollout string) string { return placed(`rollout: ` + rollout) }),
		approvalRules(at+".approvals", func(approvals string) string { return placed(`approvals: ` + approvals) }),
	)
}

var missingOfAddons = map[string]string{
	"installNamespace":                                      `installNamespace: ""`,
	"configs[0].resource":                                   `configs: [{}]`,
	"configs[0].defaults[0].name":                           `configs: [{resource: a, defaults: [{}]}]`,
	"install.placements[0].name":                            `install: {type: Placements, placements: [{namespace: a}]}`,
	"install.placements[0].configs[0].resource":             placed(`configs: [{name: a}]`),
	"install.placements[0].configs[0].name":                 placed(`configs: [{resource: configmaps}]`),
	"install.placements[0].rollout.stages[0].name":          placed(`rollout: {type: Stages, stages: [{}]}`),
	"install.placements[0].rollout.progressDeadlineSeconds": placed(`rollout: {progressDeadlineSeconds: 0}`),
	"install.placements[0].approvals[0].revision":           placed(`approvals: [{stage: a, gate: Before}]`),
	"install.placements[0].approvals[0].stage":              placed(`approvals: [{revision: a, gate: Before}]`),
	"install.placements[0].approvals[0].gate":               placed(`approvals: [{revision: a, stage: a}]`),
}

func memberAddonRules() []rule {
	return slices.Concat(
		textRules(
			"installNamespace",
			"installNamespace must be the name of a namespace",
			63,
			func(text string) string { return `installNamespace: ` + text },
			"Addons",
			"a.b",
		),
		referenceRules("configs", func(configs string) string { return `configs: ` + configs }),
		textRules(
			"hostingMember",
			"the name of a member must be a DNS label",
			63,
			func(text string) string { return `hostingMember: ` + text },
			"Hub",
			"a.b",
		),
		[]rule{
			{
				"a negative removal deadline",
				`removalDeadlineSeconds: -1`,
				`removalDeadlineSeconds: 0`,
				"removalDeadlineSeconds",
				"should be greater than or equal to 0",
			},
			{
				"a removal deadline above the maximum",
				`removalDeadlineSeconds: 86401`,
				`removalDeadlineSeconds: 86400`,
				"removalDeadlineSeconds",
				"should be less than or equal to 86400",
			},
		},
	)
}

var missingOfMemberAddons = map[string]string{
	"configs[0].resource": `configs: [{name: a}]`,
	"configs[0].name":     `configs: [{resource: a}]`,
}
