package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// ref parses "resource name", "resource namespace/name" or "resource.group name".
func ref(text string) v1alpha1.ConfigReference {
	kind, name, _ := strings.Cut(text, " ")
	var r v1alpha1.ConfigReference
	r.Resource, r.Group, _ = strings.Cut(kind, ".")
	if namespace, rest, found := strings.Cut(name, "/"); found {
		r.Namespace, name = namespace, rest
	}
	r.Name = name
	return r
}

func refs(texts ...string) []v1alpha1.ConfigReference {
	var out []v1alpha1.ConfigReference
	for _, text := range texts {
		out = append(out, ref(text))
	}
	return out
}

// addonSpec returns the spec of an add-on that declares the kinds, each as "resource.group" and then its defaults.
func addonSpec(kinds ...[]string) *v1alpha1.AddonSpec {
	spec := &v1alpha1.AddonSpec{}
	for _, kind := range kinds {
		declared := v1alpha1.ConfigKind{}
		declared.Resource, declared.Group, _ = strings.Cut(kind[0], ".")
		for _, name := range kind[1:] {
			declared.Defaults = append(declared.Defaults, ref(kind[0]+" "+name).ObjectName)
		}
		spec.Configs = append(spec.Configs, declared)
	}
	return spec
}

func TestEffective(t *testing.T) {
	const configs, maps = "addonconfigs.addon.muster.dev", "configmaps"
	for _, tc := range []struct {
		reason            string
		addon             *v1alpha1.AddonSpec
		placement, member []v1alpha1.ConfigReference
		want, problems    []string
	}{
		{
			"no declared kinds",
			addonSpec(), nil, nil, nil, nil,
		},
		{
			"a declared kind without defaults",
			addonSpec([]string{configs}), nil, nil, nil, nil,
		},
		{
			"defaults apply without other configurations",
			addonSpec([]string{configs, "fleet/base"}), nil, nil,
			[]string{"Default " + configs + " fleet/base"}, nil,
		},
		{
			"references of the Placement replace defaults",
			addonSpec([]string{configs, "fleet/base"}), refs(configs + " fleet/edge"), nil,
			[]string{"Placement " + configs + " fleet/edge"}, nil,
		},
		{
			"references of the member replace defaults",
			addonSpec([]string{configs, "fleet/base"}), nil, refs(configs + " member-east/own"),
			[]string{"Member " + configs + " member-east/own"}, nil,
		},
		{
			"references of the member replace references of the Placement",
			addonSpec([]string{configs}), refs(configs + " fleet/edge"), refs(configs + " member-east/own"),
			[]string{"Member " + configs + " member-east/own"}, nil,
		},
		{
			"references of the member replace defaults and references of the Placement",
			addonSpec([]string{configs, "fleet/base"}), refs(configs + " fleet/edge"), refs(configs + " member-east/own"),
			[]string{"Member " + configs + " member-east/own"}, nil,
		},
		{
			"one reference of a higher level replaces all references of lower levels",
			addonSpec([]string{configs, "a", "b", "c"}), refs(configs+" d", configs+" e"), refs(configs + " f"),
			[]string{"Member " + configs + " f"}, nil,
		},
		{
			"several references of a higher level replace one default",
			addonSpec([]string{configs, "a"}), refs(configs+" b", configs+" c"), nil,
			[]string{"Placement " + configs + " b", "Placement " + configs + " c"}, nil,
		},
		{
			"each kind has a separate precedence",
			addonSpec([]string{configs, "a"}, []string{maps, "b"}, []string{"secrets", "c"}), refs(maps + " d"),
			refs("secrets e"),
			[]string{"Default " + configs + " a", "Placement configmaps d", "Member secrets e"}, nil,
		},
		{
			"kinds are in the order of their declarations",
			addonSpec([]string{maps}, []string{configs}), refs(configs+" a", maps+" b"), nil,
			[]string{"Placement configmaps b", "Placement " + configs + " a"}, nil,
		},
		{
			"references of one kind keep their order",
			addonSpec([]string{configs}, []string{maps}), nil, refs(configs+" z", maps+" m", configs+" a"),
			[]string{"Member " + configs + " z", "Member " + configs + " a", "Member configmaps m"}, nil,
		},
		{
			"the same resource in another group is a different kind",
			addonSpec([]string{"configs.a.example", "x"}, []string{"configs.b.example", "y"}), nil, refs("configs.b.example z"),
			[]string{"Default configs.a.example x", "Member configs.b.example z"}, nil,
		},
		{
			"references in different namespaces are different",
			addonSpec([]string{maps}), nil, refs(maps+" a/x", maps+" b/x", maps+" x"),
			[]string{"Member configmaps a/x", "Member configmaps b/x", "Member configmaps x"}, nil,
		},
		{
			"the last of two equal references determines the order",
			addonSpec([]string{maps}), nil, refs(maps+" a", maps+" b", maps+" a"),
			[]string{"Member configmaps b", "Member configmaps a"}, nil,
		},
		{
			"duplicate defaults are removed",
			addonSpec([]string{maps, "a", "a"}), nil, nil,
			[]string{"Default configmaps a"}, nil,
		},
		{
			"a reference at a higher level replaces the same reference at a lower level",
			addonSpec([]string{maps, "a"}), refs(maps + " a"), refs(maps + " a"),
			[]string{"Member configmaps a"}, nil,
		},
		{
			"a reference to an undeclared kind is rejected, and the others apply",
			addonSpec([]string{maps, "a"}), nil, refs("secrets b", maps+" c"),
			[]string{"Member configmaps c"},
			[]string{"Unsupported Member secrets b"},
		},
		{
			"a rejected reference does not replace defaults",
			addonSpec([]string{maps, "a"}), refs("secrets b"), nil,
			[]string{"Default configmaps a"},
			[]string{"Unsupported Placement secrets b"},
		},
		{
			"the same resource in an undeclared group is rejected",
			addonSpec([]string{maps}), nil, refs("configmaps.example.com a"),
			nil,
			[]string{"Unsupported Member configmaps.example.com a"},
		},
		{
			"a rejected reference is reported once for each source",
			addonSpec(), refs("secrets b"), refs("secrets b", "secrets b", "secrets a"),
			nil,
			[]string{"Unsupported Placement secrets b", "Unsupported Member secrets b", "Unsupported Member secrets a"},
		},
		{
			"the first of two declarations of a kind applies",
			addonSpec([]string{maps, "a"}, []string{maps, "b"}), nil, nil,
			[]string{"Default configmaps a"}, nil,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			references, problems := config.Effective(tc.addon, tc.placement, tc.member)
			var got, gotProblems []string
			for _, r := range references {
				got = append(got, string(r.From)+" "+r.String())
			}
			for _, p := range problems {
				gotProblems = append(gotProblems, p.Reason+" "+string(p.From)+" "+p.Reference.String())
			}
			require.Empty(t, cmp.Diff(tc.want, got))
			require.Empty(t, cmp.Diff(tc.problems, gotProblems))
		})
	}
}

func TestProblem_MessageNamesNextStep(t *testing.T) {
	require.Equal(t, "The add-on does not support secrets shop/a, listed in the MemberAddon: remove the reference, "+
		"or declare the kind in spec.configs of the Addon.",
		config.Problem{Reference: config.Reference{ConfigReference: ref("secrets shop/a"), From: v1alpha1.FromMember},
			Reason: v1alpha1.ReasonUnsupported}.String())
	require.Equal(t, "addontemplates.addon.muster.dev logs, listed in the defaults of the Addon, does not exist: "+
		"create it, or remove the reference.",
		config.Problem{Reference: config.Reference{ConfigReference: ref("addontemplates.addon.muster.dev logs"),
			From: v1alpha1.FromDefault}, Reason: v1alpha1.ReasonConfigNotFound}.String())
}

func TestEffectiveProperties(t *testing.T) {
	kinds := []string{"a", "b", "a.example", "c"}
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "n/x", "z"}), 0, 4)
	level := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.ConfigReference {
		return ref(rapid.SampledFrom(kinds).Draw(t, "kind") + " " +
			rapid.SampledFrom([]string{"x", "y", "n/x", "z"}).Draw(t, "name"))
	}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		var declared [][]string
		for _, kind := range kinds[:rapid.IntRange(0, len(kinds)).Draw(t, "declared")] {
			declared = append(declared, append([]string{kind}, names.Draw(t, "defaults")...))
		}
		addon, placement, member := addonSpec(declared...), level.Draw(t, "placement"), level.Draw(t, "member")
		before := []any{addon.DeepCopy(), slices.Clone(placement), slices.Clone(member)}
		got, problems := config.Effective(addon, placement, member)
		again, _ := config.Effective(addon, placement, member)
		require.Equal(t, got, again)
		require.Empty(t, cmp.Diff(before, []any{addon, placement, member}), "Effective changed its arguments")

		// Kinds are in the order of their declarations. The references of a kind come from the highest level that has
		// any. Rejected references have undeclared kinds.
		sources := map[string]v1alpha1.ConfigSource{}
		last, seen := -1, map[v1alpha1.ConfigReference]bool{}
		var effective []v1alpha1.ConfigReference
		for _, r := range got {
			kind, _, _ := strings.Cut(r.String(), " ")
			at := slices.IndexFunc(declared, func(d []string) bool { return d[0] == kind })
			require.GreaterOrEqual(t, at, last)
			last = at
			if from, found := sources[kind]; found {
				require.Equal(t, from, r.From)
			}
			sources[kind] = r.From
			require.False(t, seen[r.ConfigReference])
			seen[r.ConfigReference] = true
			effective = append(effective, r.ConfigReference)
		}
		hasKind := func(refs []v1alpha1.ConfigReference, kind string) bool {
			return slices.ContainsFunc(refs, func(r v1alpha1.ConfigReference) bool {
				return config.Reference{ConfigReference: r}.String() == kind+" "+
					config.Reference{ConfigReference: v1alpha1.ConfigReference{ObjectName: r.ObjectName}}.String()[1:]
			})
		}
		for kind, from := range sources {
			want := v1alpha1.FromDefault
			switch {
			case hasKind(member, kind):
				want = v1alpha1.FromMember
			case hasKind(placement, kind):
				want = v1alpha1.FromPlacement
			}
			require.Equal(t, want, from)
		}
		for _, p := range problems {
			require.False(t,
				slices.ContainsFunc(declared, func(d []string) bool { return strings.HasPrefix(p.Reference.String(), d[0]+" ") }))
		}

		// A member that lists the effective references in the same order has the same effective references.
		pinned, problems := config.Effective(addon, placement, effective)
		require.Empty(t, problemsFrom(problems, v1alpha1.FromMember))
		require.Len(t, pinned, len(got))
		for i := range pinned {
			require.Equal(t, got[i].ConfigReference, pinned[i].ConfigReference)
			require.Equal(t, v1alpha1.FromMember, pinned[i].From)
		}
	})
}

func problemsFrom(problems []config.Problem, from v1alpha1.ConfigSource) []config.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p config.Problem) bool { return p.From != from })
}
