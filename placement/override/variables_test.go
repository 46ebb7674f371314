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

var described = &scheduler.Cluster{
	Name:       "east",
	Labels:     map[string]string{"region": "eu", "empty": "", "topology.kubernetes.io/zone": "eu-1"},
	Properties: map[string]string{`a"b`: "quoted", "a']": "odd", "sly": "${muster.cluster.name}"},
}

func TestExpand(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"text is text", "plain", "plain"},
		{"nothing is nothing", "", ""},
		{"the name", "${muster.cluster.name}", "east"},
		{"in the midst of text", "a-${muster.cluster.name}-b", "a-east-b"},
		{"several", "${muster.cluster.name}${muster.cluster.labels['region']}", "easteu"},
		{"a label with dots and a slash", `${muster.cluster.labels["topology.kubernetes.io/zone"]}`, "eu-1"},
		{"the quote that the name does not have", `${muster.cluster.properties['a"b']}`, "quoted"},
		{"a name may have brackets", `${muster.cluster.properties["a']"]}`, "odd"},
		{"what is empty is there", "<${muster.cluster.labels['empty']}>", "<>"},
		{"a default for what is missing", "${muster.cluster.labels['zone']:-none}", "none"},
		{"and for what is empty", "${muster.cluster.labels['empty']:-none}", "none"},
		{"but not for what is there", "${muster.cluster.labels['region']:-none}", "eu"},
		{"a default may be empty", "<${muster.cluster.labels['zone']:-}>", "<>"},
		{"a default is text", "${muster.cluster.labels['zone']:-a :- $b 'c'}", "a :- $b 'c'"},
		{"shells and templates keep theirs", "${HOME} $(POD_IP) ${muster} ${mustered} $$ {{ .x }} ${ muster.x}",
			"${HOME} $(POD_IP) ${muster} ${mustered} $$ {{ .x }} ${ muster.x}"},
		{"two dollars are one, and no variable", "$${muster.cluster.name}", "${muster.cluster.name}"},
		{"even of what would be none", "$${muster.x", "${muster.x"},
		{"three are one, and a variable", "$$${muster.cluster.name}", "$east"},
		{"four are two, and no variable", "$$$${muster.cluster.name}", "$${muster.cluster.name}"},
		{"elsewhere they are what they are", "$$ $$${x} ${muster.cluster.name}$$", "$$ $$${x} east$$"},
		{"what comes out is not looked through", "${muster.cluster.properties['sly']}", "${muster.cluster.name}"},
		{"nor together with what follows", "$${muster.${muster.cluster.name}", "${muster.east"},
	} {
		got, err := override.Expand(test.text, described)
		if err != nil || got != test.want {
			t.Errorf("%s: %s: want %q, got %q, %v", test.reason, test.text, test.want, got, err)
		}
	}
}

func TestExpandFails(t *testing.T) {
	for _, test := range []struct {
		reason, text string
		want         error
	}{
		{"a label that is not there", "${muster.cluster.labels['zone']}", override.ErrNoValue},
		{"a property that is not there", "${muster.cluster.properties['region']}", override.ErrNoValue},
		{"no end", "${muster.cluster.name", override.ErrSyntax},
		{"no such thing", "${muster.hub.name}", override.ErrSyntax},
		{"no such field", "${muster.cluster.region}", override.ErrSyntax},
		{"more than the name", "${muster.cluster.names}", override.ErrSyntax},
		{"no quotes", "${muster.cluster.labels[region]}", override.ErrSyntax},
		{"no key", "${muster.cluster.labels}", override.ErrSyntax},
		{"an empty key", "${muster.cluster.labels['']}", override.ErrSyntax},
		{"two kinds of quotes", `${muster.cluster.labels['region"]}`, override.ErrSyntax},
		{"a key that ends the text", `${muster.cluster.labels[`, override.ErrSyntax},
		{"spaces", "${muster.cluster.name }", override.ErrSyntax},
		{"half a default", "${muster.cluster.name:none}", override.ErrSyntax},
		{"a default without an end", "${muster.cluster.name:-none", override.ErrSyntax},
		{"a default that would be a variable", "${muster.cluster.labels['zone']:-${muster.cluster.name}}",
			override.ErrSyntax},
		{"the one that is wrong after those that are right", "${muster.cluster.name}$${muster.x}${muster.x}",
			override.ErrSyntax},
	} {
		got, err := override.Expand(test.text, described)
		if !errors.Is(err, test.want) || got != "" {
			t.Errorf("%s: %s: want %v, got %q, %v", test.reason, test.text, test.want, got, err)
		}
	}
	_, err := override.Expand("a ${muster.cluster.labels['zone']} b", described)
	require.EqualError(t, err,
		`muster.cluster.labels["zone"]: the cluster has no such value, and the variable has no default`)
}

// TestExpandIsBounded checks that the length of the result is limited during the expansion, for any number of variables
// and any length of their values.
func TestExpandIsBounded(t *testing.T) {
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
		out, err := override.Expand(text, described)
		if !strings.Contains(text, "${muster.") {
			require.NoError(t, err)
			require.Equal(t, text, out)
		}
		if err != nil {
			require.Empty(t, out)
			return
		}
		// Escaped, any text comes out as it is.
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
		same, err := override.Expand(escaped.String(), described)
		require.NoError(t, err)
		require.Equal(t, text, same)
	})
}
