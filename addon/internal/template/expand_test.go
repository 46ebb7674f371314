package template

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/config"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func east(variables map[string]string) Input {
	return Input{Cluster: "east", Addon: "logs", InstallNamespace: "logging",
		Settings: config.Settings{Variables: variables}}
}

func expanderOf(t require.TestingT, variables map[string]string) *expander {
	e, err := newExpander(east(variables))
	require.NoError(t, err)
	return e
}

var variables = map[string]string{"REGION": "eu", "EMPTY": "", "SLY": "${CLUSTER_NAME}", "_a1": "low", "DOLLAR": "$"}

func TestExpand(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"text is text", "plain", "plain"},
		{"nothing is nothing", "", ""},
		{"the cluster", "${CLUSTER_NAME}", "east"},
		{"the add-on", "${ADDON_NAME}", "logs"},
		{"the namespace", "${INSTALL_NAMESPACE}", "logging"},
		{"a variable of an AddonConfig", "${REGION}", "eu"},
		{"letters of either case, digits and _", "${_a1}", "low"},
		{"an empty value is a value", "<${EMPTY}>", "<>"},
		{"several, in the midst of text", "a-${REGION}-${CLUSTER_NAME}b", "a-eu-eastb"},
		{"what else looks like one is text", "$HOME $(POD_IP) {{ .x }} {REGION} $ $$ $$$",
			"$HOME $(POD_IP) {{ .x }} {REGION} $ $$ $$$"},
		{"two dollars are one, and no variable", "$${REGION}", "${REGION}"},
		{"even of what would be none", "$${x y", "${x y"},
		{"three are one, and a variable", "$$${REGION}", "$eu"},
		{"four are two, and no variable", "$$$${REGION}", "$${REGION}"},
		{"what comes out is not looked through", "${SLY}", "${CLUSTER_NAME}"},
		{"nor together with what follows", "${DOLLAR}{REGION}", "${REGION}"},
		{"nor does it escape what follows", "${DOLLAR}${REGION}", "$eu"},
		{"a } is text", "}${REGION}}", "}eu}"},
		{"one that is escaped does not keep the next from being one", "$${${REGION}}", "${eu}"},
	} {
		got, err := expanderOf(t, variables).expand(tc.text)
		require.NoError(t, err, tc.reason)
		require.Equal(t, tc.want, got, tc.reason)
	}
}

func TestExpandFails(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         error
		says         string
	}{
		{"a variable that is not set", "${ZONE}", ErrUnknown, "${ZONE}: the variable does not exist: no applicable " +
			"AddonConfig sets it"},
		{"names are whole, and letters are what they are", "${region}", ErrUnknown, ""},
		{"no end", "${REGION", ErrSyntax, "line 1: a variable is ${NAME}, of letters, digits and '_', not beginning " +
			"with a digit; as text ${ is $${"},
		{"where it is, without a word of what may be secret", "a\n$${b\nc ${secret ", ErrSyntax,
			"line 3: " + ErrSyntax.Error()},
		{"no name", "${}", ErrSyntax, ""},
		{"spaces", "${ REGION }", ErrSyntax, ""},
		{"a digit first", "${1A}", ErrSyntax, ""},
		{"a default, as of a shell", "${REGION:-eu}", ErrSyntax, ""},
		{"one within another", "${A${REGION}}", ErrSyntax, ""},
		{"the one that is wrong after those that are right", "${REGION}$${x}${x.y}", ErrSyntax, ""},
	} {
		got, err := expanderOf(t, variables).expand(tc.text)
		require.ErrorIs(t, err, tc.want, tc.reason)
		require.Empty(t, got)
		if tc.says != "" {
			require.EqualError(t, err, tc.says, tc.reason)
		}
	}
}

func TestBuiltInVariables(t *testing.T) {
	for _, name := range []string{"CLUSTER_NAME", "ADDON_NAME", "INSTALL_NAMESPACE"} {
		_, err := newExpander(east(map[string]string{name: "mine"}))
		require.ErrorIs(t, err, ErrBuiltIn)
		require.ErrorContains(t, err, name)
	}
	for missing, in := range map[string]Input{
		"CLUSTER_NAME": {Addon: "a", InstallNamespace: "b"}, "ADDON_NAME": {Cluster: "a", InstallNamespace: "b"},
		"INSTALL_NAMESPACE": {Cluster: "a", Addon: "b"},
	} {
		_, err := newExpander(in)
		require.ErrorContains(t, err, missing+" is empty")
	}
}

// TestExpandIsBounded checks that the size of the result is limited during the expansion, regardless of the number
// and size of the variables.
func TestExpandIsBounded(t *testing.T) {
	big := map[string]string{"A": strings.Repeat("x", 100_000)}
	text := strings.Repeat("${A}", 10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := expanderOf(t, big).expand(text)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*workv1alpha1.MaxManifestBytes))

	// All strings together have that much, too, and those without variables as much as they like.
	e := expanderOf(t, big)
	for range workv1alpha1.MaxManifestBytes / 100_000 {
		_, err := e.expand("${A}")
		require.NoError(t, err)
		_, err = e.expand(big["A"])
		require.NoError(t, err)
	}
	_, err = e.expand("${A}")
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = expanderOf(t, nil).expand(strings.Repeat("x", workv1alpha1.MaxManifestBytes) + "$${")
	require.ErrorIs(t, err, ErrTooLarge)
}

// escape returns text that expands to the given text.
func escape(text string) string {
	var out strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, start)
		plain := strings.TrimRight(before, "$")
		out.WriteString(plain)
		if !found {
			return out.String() + before[len(plain):]
		}
		out.WriteString(strings.Repeat("$", 2*(len(before)-len(plain)+1)) + "{")
		rest = after
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"${CLUSTER_NAME}", "$$${REGION}", "$${", "${SLY}${EMPTY}", "${x", "a${REGION}$$${b}",
		"${${REGION}}", "\n${"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := expanderOf(t, variables).expand(text)
		if !strings.Contains(text, start) {
			require.NoError(t, err)
			require.Equal(t, text, out)
		}
		if err != nil {
			require.Empty(t, out)
		}
		same, err := expanderOf(t, nil).expand(escape(text))
		require.NoError(t, err)
		require.Equal(t, text, same, "escaped, any text comes out as it is")
	})
}

// TestNoVariableIsLeft checks that with values without $, and without escapes, the result contains no start of a
// variable.
func TestNoVariableIsLeft(t *testing.T) {
	names := []string{"A", "B_1", "CLUSTER_NAME", "INSTALL_NAMESPACE"}
	rapid.Check(t, func(t *rapid.T) {
		set := map[string]string{}
		for _, name := range names[:2] {
			set[name] = rapid.StringMatching(`[^$]{0,8}`).Draw(t, name)
		}
		var text, want string
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "is a variable") {
				name := rapid.SampledFrom(names).Draw(t, "name")
				text += "${" + name + "}"
				want += expanderOf(t, set).values[name]
			} else {
				part := rapid.StringMatching(`[^$]{0,8}`).Draw(t, "text")
				text, want = text+part, want+part
			}
		}
		got, err := expanderOf(t, set).expand(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NotContains(t, got, start)
	})
}
