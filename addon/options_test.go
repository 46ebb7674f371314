package addon

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namedAgent is an add-on with only a name.
type namedAgent string

func (n namedAgent) Name() string { return string(n) }

func (namedAgent) Manifests(context.Context, Input) ([]client.Object, error) { return nil, nil }

// TestOptions_Validation checks that the error names the option and the problem.
func TestOptions_Validation(t *testing.T) {
	for _, row := range []struct {
		reason  string
		options Options
		want    string // empty: the options are valid
	}{
		{"the zero value", Options{}, ""},
		{"agents with valid names", Options{Agents: []Agent{namedAgent("logs"), namedAgent("logs-2")}}, ""},
		{"a nil agent", Options{Agents: []Agent{namedAgent("logs"), nil}},
			"addon.Options.Agents[1]: must not be nil"},
		{"an agent without a name", Options{Agents: []Agent{namedAgent("")}}, "addon.Options.Agents[0]: must have a name"},
		{"two agents with one name", Options{Agents: []Agent{namedAgent("logs"), namedAgent("logs")}},
			`addon.Options.Agents[1]: duplicate name "logs"`},
		{"an agent name with an uppercase letter", Options{Agents: []Agent{namedAgent("Logs")}},
			`addon.Options.Agents[0]: name "Logs" is not a valid name`},
		{"an agent name with a dot", Options{Agents: []Agent{namedAgent("logs.v2")}},
			`addon.Options.Agents[0]: name "logs.v2" is not a valid name`},
		{"an agent name longer than the maximum", Options{Agents: []Agent{namedAgent(strings.Repeat("x", 64))}},
			`addon.Options.Agents[0]: name`},
		{"a negative number of workers", Options{Workers: -1}, "addon.Options.Workers: must not be negative, got -1"},
		{"a negative number of removals",
			Options{MaxRemoving: -2}, "addon.Options.MaxRemoving: must not be negative, got -2"},
	} {
		_, _, err := row.options.withDefaults()
		if row.want == "" {
			require.NoError(t, err, row.reason)
			continue
		}
		require.ErrorContains(t, err, row.want, row.reason)
	}
}

func TestOptions_CallTimeout(t *testing.T) {
	for _, row := range []struct {
		name, reason string
		given, want  time.Duration
		err          string
	}{
		{"zero", "want the default", 0, 30 * time.Second, ""},
		{"positive", "want the given timeout", time.Minute, time.Minute, ""},
		{"negative", "want an error", -time.Second, 0,
			"addon.Options.CallTimeout: must not be negative, got -1s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, _, err := Options{CallTimeout: row.given}.withDefaults()
			if row.err != "" {
				require.EqualError(t, err, row.err, row.reason)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, o.CallTimeout, row.reason)
		})
	}
}
