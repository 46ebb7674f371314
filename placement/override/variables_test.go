package override_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var cluster = &scheduler.Cluster{
	Name:       "east",
	Labels:     map[string]string{"region": "eu", "empty": "", "topology.kubernetes.io/zone": "eu-1"},
	Properties: map[string]string{`a"b`: "quoted", "a']": "odd", "sly": "${muster.cluster.name}"},
}

func TestExpand(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"a text without variables", "plain", "plain"},
		{"an empty text", "", ""},
		{"the name of the cluster", "${muster.cluster.name}", "east"},
		{"a variable within text", "a-${muster.cluster.name}-b", "a-east-b"},
		{"two variables", "${muster.cluster.name}${muster.cluster.labels['region']}", "easteu"},
		{"a label with dots and a slash", `${muster.cluster.labels["topology.kubernetes.io/zone"]}`, "eu-1"},
		{"single quotes around a key with a double quote", `${muster.cluster.properties['a"b']}`, "quoted"},
		{"a key with a quote and a bracket", `${muster.cluster.properties["a']"]}`, "odd"},
		{"an empty label has a value", "<${muster.cluster.labels['empty']}>", "<>"},
		{"a default for a missing label", "${muster.cluster.labels['zone']:-none}", "none"},
		{"a default for an empty label", "${muster.cluster.labels['empty']:-none}", "none"},
		{"an existing label precedes the default", "${muster.cluster.labels['region']:-none}", "eu"},
		{"an empty default", "<${muster.cluster.labels['zone']:-}>", "<>"},
		{"a default with special characters", "${muster.cluster.labels['zone']:-a :- $b 'c'}", "a :- $b 'c'"},
		{"variables of shells and templates are not changed",
			"${HOME} $(POD_IP) ${muster} ${mustered} $$ {{ .x }} ${ muster.x}",
			"${HOME} $(POD_IP) ${muster} ${mustered} $$ {{ .x }} ${ muster.x}"},
		{"two dollars escape a variable", "$${muster.cluster.name}", "${muster.cluster.name}"},
		{"two dollars escape an invalid variable", "$${muster.x", "${muster.x"},
		{"three dollars are one dollar and a variable", "$$${muster.cluster.name}", "$east"},
		{"four dollars are two dollars and no variable", "$$$${muster.cluster.name}", "$${muster.cluster.name}"},
		{"dollars elsewhere are not changed", "$$ $$${x} ${muster.cluster.name}$$", "$$ $$${x} east$$"},
		{"a variable in a value is not expanded", "${muster.cluster.properties['sly']}", "${muster.cluster.name}"},
		{"a value and the text before it are not a variable", "$${muster.${muster.cluster.name}", "${muster.east"},
	} {
		got, err := override.Expand(test.text, cluster)
		if err != nil || got != test.want {
			t.Errorf("%s: %s: want %q, got %q, %v", test.reason, test.text, test.want, got, err)
		}
	}
}

func TestExpand_InvalidVariables(t *testing.T) {
	for _, test := range []struct {
		reason, text string
		want         error
	}{
		{"a missing label", "${muster.cluster.labels['zone']}", override.ErrNoValue},
		{"a missing property", "${muster.cluster.properties['region']}", override.ErrNoValue},
		{"a missing closing brace", "${muster.cluster.name", override.ErrSyntax},
		{"an unknown variable", "${muster.hub.name}", override.ErrSyntax},
		{"an unknown field", "${muster.cluster.region}", override.ErrSyntax},
		{"a field that starts with a known name", "${muster.cluster.names}", override.ErrSyntax},
		{"no quotes", "${muster.cluster.labels[region]}", override.ErrSyntax},
		{"no key", "${muster.cluster.labels}", override.ErrSyntax},
		{"an empty key", "${muster.cluster.labels['']}", override.ErrSyntax},
		{"different quotes", `${muster.cluster.labels['region"]}`, override.ErrSyntax},
		{"a text that ends before the key", `${muster.cluster.labels[`, override.ErrSyntax},
		{"spaces", "${muster.cluster.name }", override.ErrSyntax},
		{"a default without the dash", "${muster.cluster.name:none}", override.ErrSyntax},
		{"a default without a closing brace", "${muster.cluster.name:-none", override.ErrSyntax},
		{"a variable as default", "${muster.cluster.labels['zone']:-${muster.cluster.name}}",
			override.ErrSyntax},
		{"an invalid variable after valid ones", "${muster.cluster.name}$${muster.x}${muster.x}",
			override.ErrSyntax},
	} {
		got, err := override.Expand(test.text, cluster)
		if !errors.Is(err, test.want) || got != "" {
			t.Errorf("%s: %s: want %v, got %q, %v", test.reason, test.text, test.want, got, err)
		}
	}
	_, err := override.Expand("a ${muster.cluster.labels['zone']} b", cluster)
	require.EqualError(t, err,
		`muster.cluster.labels["zone"]: the cluster has no such value, and the variable has no default`)
}

// TestExpand_LimitsTheResult checks that the length of the result is limited during the expansion, for any number of
// variables and any length of their values.
func TestExpand_LimitsTheResult(t *testing.T) {
	big := &scheduler.Cluster{Properties: map[string]string{"p": strings.Repeat("x", 100_000)}}
	text := strings.Repeat("${muster.cluster.properties['p']}", 10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := override.Expand(text, big)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, override.ErrTooLarge)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*workv1alpha1.MaxManifestBytes))
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"${muster.cluster.name}", "$$${muster.cluster.labels['region']:-a}",
		`${muster.cluster.properties["sly"]}`, "$${muster.", "${muster.cluster.labels[\"",
		"a${muster.cluster.labels['x']:-}${b}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := override.Expand(text, cluster)
		if !strings.Contains(text, "${muster.") {
			require.NoError(t, err)
			require.Equal(t, text, out)
		}
		if err != nil {
			require.Empty(t, out)
			return
		}
		// The expansion of an escaped text is the text.
		var escaped strings.Builder
		for rest := text; ; {
			before, after, found := strings.Cut(rest, "${muster.")
			plain := strings.TrimRight(before, "$")
			escaped.WriteString(plain)
			if !found {
				escaped.WriteString(before[len(plain):])
				break
			}
			escaped.WriteString(strings.Repeat("$", 2*(len(before)-len(plain)+1)) + "{muster.")
			rest = after
		}
		unescaped, err := override.Expand(escaped.String(), cluster)
		require.NoError(t, err)
		require.Equal(t, text, unescaped)
	})
}
