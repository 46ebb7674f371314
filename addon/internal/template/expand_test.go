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
		{"text without variables", "plain", "plain"},
		{"an empty text", "", ""},
		{"the name of the cluster", "${CLUSTER_NAME}", "east"},
		{"the name of the add-on", "${ADDON_NAME}", "logs"},
		{"the install namespace", "${INSTALL_NAMESPACE}", "logging"},
		{"a variable of an AddonConfig", "${REGION}", "eu"},
		{"a name of letters, digits and underscores", "${_a1}", "low"},
		{"an empty value", "<${EMPTY}>", "<>"},
		{"several variables within text", "a-${REGION}-${CLUSTER_NAME}b", "a-eu-eastb"},
		{"other notations of variables are text", "$HOME $(POD_IP) {{ .x }} {REGION} $ $$ $$$",
			"$HOME $(POD_IP) {{ .x }} {REGION} $ $$ $$$"},
		{"two dollar signs escape a variable", "$${REGION}", "${REGION}"},
		{"two dollar signs escape an invalid variable", "$${x y", "${x y"},
		{"three dollar signs are a dollar sign and a variable", "$$${REGION}", "$eu"},
		{"four dollar signs are a dollar sign and an escaped variable", "$$$${REGION}", "$${REGION}"},
		{"values are not expanded", "${SLY}", "${CLUSTER_NAME}"},
		{"a value and the following text are not expanded together", "${DOLLAR}{REGION}", "${REGION}"},
		{"a value does not escape the following variable", "${DOLLAR}${REGION}", "$eu"},
		{"a closing brace is text", "}${REGION}}", "}eu}"},
		{"a variable within an escaped variable", "$${${REGION}}", "${eu}"},
	} {
		got, err := expanderOf(t, variables).expand(tc.text)
		require.NoError(t, err, tc.reason)
		require.Equal(t, tc.want, got, tc.reason)
	}
}

func TestExpand_Errors(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         error
		message      string
	}{
		{"an undefined variable", "${ZONE}", ErrUnknown, "${ZONE}: the variable does not exist: no applicable " +
			"AddonConfig sets it"},
		{"names are case-sensitive", "${region}", ErrUnknown, ""},
		{"a missing closing brace",
			"${REGION", ErrSyntax, "line 1: a variable is ${NAME}, of letters, digits and '_', not beginning " +
				"with a digit; as text ${ is $${"},
		{"the message contains the line and no text", "a\n$${b\nc ${secret ", ErrSyntax,
			"line 3: " + ErrSyntax.Error()},
		{"a missing name", "${}", ErrSyntax, ""},
		{"spaces around the name", "${ REGION }", ErrSyntax, ""},
		{"a name that begins with a digit", "${1A}", ErrSyntax, ""},
		{"a default as in a shell", "${REGION:-eu}", ErrSyntax, ""},
		{"a variable within a variable", "${A${REGION}}", ErrSyntax, ""},
		{"an invalid variable after valid ones", "${REGION}$${x}${x.y}", ErrSyntax, ""},
	} {
		got, err := expanderOf(t, variables).expand(tc.text)
		require.ErrorIs(t, err, tc.want, tc.reason)
		require.Empty(t, got)
		if tc.message != "" {
			require.EqualError(t, err, tc.message, tc.reason)
		}
	}
}

func TestExpander_BuiltInVariables(t *testing.T) {
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

// TestExpand_SizeIsBounded checks that the size of the result is limited during the expansion, regardless of the number
// and size of the variables.
func TestExpand_SizeIsBounded(t *testing.T) {
	big := map[string]string{"A": strings.Repeat("x", 100_000)}
	text := strings.Repeat("${A}", 10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := expanderOf(t, big).expand(text)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*workv1alpha1.MaxManifestBytes))

	// The limit applies to all strings with variables together. Strings without variables are not limited.
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
		require.Equal(t, text, same, "want escaped text to expand to the text")
	})
}

// TestExpand_NoVariableRemains checks that with values without $, and without escapes, the result contains no start of
// a variable.
func TestExpand_NoVariableRemains(t *testing.T) {
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
