package addon

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nothing is an add-on with only a name.
type nothing string

func (n nothing) Name() string { return string(n) }

func (nothing) Manifests(context.Context, Input) ([]client.Object, error) { return nil, nil }

// TestOptionsThatAreWrong checks that the error names the option and the problem.
func TestOptionsThatAreWrong(t *testing.T) {
	for _, row := range []struct {
		reason  string
		options Options
		want    string // empty: they are right
	}{
		{"the zero value works", Options{}, ""},
		{"agents have names that Addons can have", Options{Agents: []Agent{nothing("logs"), nothing("logs-2")}}, ""},
		{"one that is nothing would panic", Options{Agents: []Agent{nothing("logs"), nil}},
			"addon.Options.Agents[1]: must not be nil"},
		{"one without a name is none's", Options{Agents: []Agent{nothing("")}}, "addon.Options.Agents[0]: must have a name"},
		{"one of two would never run", Options{Agents: []Agent{nothing("logs"), nothing("logs")}},
			`addon.Options.Agents[1]: duplicate name "logs"`},
		{"nor would one whose Addon nobody can make", Options{Agents: []Agent{nothing("Logs")}},
			`addon.Options.Agents[0]: name "Logs" is not a valid name`},
		{"a name with dots is no label", Options{Agents: []Agent{nothing("logs.v2")}},
			`addon.Options.Agents[0]: name "logs.v2" is not a valid name`},
		{"nor is a long one", Options{Agents: []Agent{nothing(strings.Repeat("x", 64))}},
			`addon.Options.Agents[0]: name`},
		{"less than nobody works", Options{Workers: -1}, "addon.Options.Workers: must not be negative, got -1"},
		{"less than nothing goes", Options{MaxRemoving: -2}, "addon.Options.MaxRemoving: must not be negative, got -2"},
	} {
		_, _, err := row.options.withDefaults()
		if row.want == "" {
			require.NoError(t, err, row.reason)
			continue
		}
		require.ErrorContains(t, err, row.want, row.reason)
	}
}

func TestCallTimeout(t *testing.T) {
	for _, row := range []struct {
		name, reason string
		is, want     time.Duration
		err          string
	}{
		{"none", "the zero value works", 0, 30 * time.Second, ""},
		{"one", "it is taken as it is", time.Minute, time.Minute, ""},
		{"less than nothing", "whoever has set it is told what is wrong", -time.Second, 0,
			"addon.Options.CallTimeout: must not be negative, got -1s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, _, err := Options{CallTimeout: row.is}.withDefaults()
			if row.err != "" {
				require.EqualError(t, err, row.err, row.reason)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, o.CallTimeout, row.reason)
		})
	}
}
