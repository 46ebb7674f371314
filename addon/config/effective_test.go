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

// takes returns an add-on that declares the kinds, each as "resource.group" and then its defaults.
func takes(kinds ...[]string) *v1alpha1.AddonSpec {
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
			"nothing is declared, nothing counts",
			takes(), nil, nil, nil, nil,
		},
		{
			"a kind without defaults needs none",
			takes([]string{configs}), nil, nil, nil, nil,
		},
		{
			"defaults apply without other configurations",
			takes([]string{configs, "fleet/base"}), nil, nil,
			[]string{"Default " + configs + " fleet/base"}, nil,
		},
		{
			"the install strategy goes before defaults",
			takes([]string{configs, "fleet/base"}), refs(configs + " fleet/edge"), nil,
			[]string{"Placement " + configs + " fleet/edge"}, nil,
		},
		{
			"the member goes before defaults",
			takes([]string{configs, "fleet/base"}), nil, refs(configs + " member-east/own"),
			[]string{"Member " + configs + " member-east/own"}, nil,
		},
		{
			"the member goes before the install strategy",
			takes([]string{configs}), refs(configs + " fleet/edge"), refs(configs + " member-east/own"),
			[]string{"Member " + configs + " member-east/own"}, nil,
		},
		{
			"the member goes before both",
			takes([]string{configs, "fleet/base"}), refs(configs + " fleet/edge"), refs(configs + " member-east/own"),
			[]string{"Member " + configs + " member-east/own"}, nil,
		},
		{
			"a higher level takes the place of all that lower ones say, however many",
			takes([]string{configs, "a", "b", "c"}), refs(configs+" d", configs+" e"), refs(configs + " f"),
			[]string{"Member " + configs + " f"}, nil,
		},
		{
			"and it may name more",
			takes([]string{configs, "a"}), refs(configs+" b", configs+" c"), nil,
			[]string{"Placement " + configs + " b", "Placement " + configs + " c"}, nil,
		},
		{
			"each kind goes by itself",
			takes([]string{configs, "a"}, []string{maps, "b"}, []string{"secrets", "c"}), refs(maps + " d"), refs("secrets e"),
			[]string{"Default " + configs + " a", "Placement configmaps d", "Member secrets e"}, nil,
		},
		{
			"kinds are in the order in which they are declared, not named",
			takes([]string{maps}, []string{configs}), refs(configs+" a", maps+" b"), nil,
			[]string{"Placement configmaps b", "Placement " + configs + " a"}, nil,
		},
		{
			"those of a kind keep their order, even with others in between",
			takes([]string{configs}, []string{maps}), nil, refs(configs+" z", maps+" m", configs+" a"),
			[]string{"Member " + configs + " z", "Member " + configs + " a", "Member configmaps m"}, nil,
		},
		{
			"the same resource of another group is another kind",
			takes([]string{"configs.a.example", "x"}, []string{"configs.b.example", "y"}), nil, refs("configs.b.example z"),
			[]string{"Default configs.a.example x", "Member configs.b.example z"}, nil,
		},
		{
			"a namespace is part of which one it is",
			takes([]string{maps}), nil, refs(maps+" a/x", maps+" b/x", maps+" x"),
			[]string{"Member configmaps a/x", "Member configmaps b/x", "Member configmaps x"}, nil,
		},
		{
			"one that is named twice counts where it is named last, as it would by what it says",
			takes([]string{maps}), nil, refs(maps+" a", maps+" b", maps+" a"),
			[]string{"Member configmaps b", "Member configmaps a"}, nil,
		},
		{
			"in defaults, too",
			takes([]string{maps, "a", "a"}), nil, nil,
			[]string{"Default configmaps a"}, nil,
		},
		{
			"a level that names what a lower one names is whose it is",
			takes([]string{maps, "a"}), refs(maps + " a"), refs(maps + " a"),
			[]string{"Member configmaps a"}, nil,
		},
		{
			"a kind that is not declared is refused, the others count",
			takes([]string{maps, "a"}), nil, refs("secrets b", maps+" c"),
			[]string{"Member configmaps c"},
			[]string{"Unsupported Member secrets b"},
		},
		{
			"what is refused does not keep a lower level from counting",
			takes([]string{maps, "a"}), refs("secrets b"), nil,
			[]string{"Default configmaps a"},
			[]string{"Unsupported Placement secrets b"},
		},
		{
			"the same resource of a group that is not declared is refused",
			takes([]string{maps}), nil, refs("configmaps.example.com a"),
			nil,
			[]string{"Unsupported Member configmaps.example.com a"},
		},
		{
			"a rejected one is reported once for each source",
			takes(), refs("secrets b"), refs("secrets b", "secrets b", "secrets a"),
			nil,
			[]string{"Unsupported Placement secrets b", "Unsupported Member secrets b", "Unsupported Member secrets a"},
		},
		{
			"a kind that is declared twice, as no API server lets it be, is the first",
			takes([]string{maps, "a"}, []string{maps, "b"}), nil, nil,
			[]string{"Default configmaps a"}, nil,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			references, problems := config.Effective(tc.addon, tc.placement, tc.member)
			var got, wrong []string
			for _, r := range references {
				got = append(got, string(r.From)+" "+r.String())
			}
			for _, p := range problems {
				wrong = append(wrong, p.Reason+" "+string(p.From)+" "+p.Reference.String())
			}
			require.Empty(t, cmp.Diff(tc.want, got))
			require.Empty(t, cmp.Diff(tc.problems, wrong))
		})
	}
}

func TestProblemSaysWhatToDo(t *testing.T) {
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
		addon, placement, member := takes(declared...), level.Draw(t, "placement"), level.Draw(t, "member")
		before := []any{addon.DeepCopy(), slices.Clone(placement), slices.Clone(member)}
		got, problems := config.Effective(addon, placement, member)
		again, _ := config.Effective(addon, placement, member)
		require.Equal(t, got, again)
		require.Empty(t, cmp.Diff(before, []any{addon, placement, member}), "what was given was changed")

		// The kinds are in their order, each is from one level, the highest that names it, and all that is refused is
		// undeclared.
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
		names := func(refs []v1alpha1.ConfigReference, kind string) bool {
			return slices.ContainsFunc(refs, func(r v1alpha1.ConfigReference) bool {
				return config.Reference{ConfigReference: r}.String() == kind+" "+
					config.Reference{ConfigReference: v1alpha1.ConfigReference{ObjectName: r.ObjectName}}.String()[1:]
			})
		}
		for kind, from := range sources {
			want := v1alpha1.FromDefault
			switch {
			case names(member, kind):
				want = v1alpha1.FromMember
			case names(placement, kind):
				want = v1alpha1.FromPlacement
			}
			require.Equal(t, want, from)
		}
		for _, p := range problems {
			require.False(t,
				slices.ContainsFunc(declared, func(d []string) bool { return strings.HasPrefix(p.Reference.String(), d[0]+" ") }))
		}

		// Were a member to name what counts, in the same order, the same would count.
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
