package assembly

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
)

// TestAgentOptions_EachHubHasItsOwnCleaner checks that the clean-up for one hub is never that of another: with several
// hubs each has a cleaner, and the agent itself has none.
func TestAgentOptions_EachHubHasItsOwnCleaner(t *testing.T) {
	member := &rest.Config{Host: "https://member"}
	for _, test := range []struct {
		reason   string
		hubs     []agent.HubOptions
		cleaners []int // of each hub, and of the agent
	}{
		{"one hub has no name, and the agent has the cleaner", nil, []int{1}},
		{"one hub with a name has the cleaner", []agent.HubOptions{{Name: "one"}}, []int{1, 0}},
		{"two hubs have one cleaner each", []agent.HubOptions{{Name: "one"}, {Name: "two"}}, []int{1, 1, 0}},
	} {
		options := agent.Options{Hubs: test.hubs}
		require.NoError(t, (&AgentOptions{}).addWorks(&options, member), test.reason)
		var cleaners []int
		for _, hub := range options.Hubs {
			cleaners = append(cleaners, len(hub.Cleaners))
		}
		require.Equal(t, test.cleaners, append(cleaners, len(options.Cleaners)), test.reason)
		require.Len(t, options.Companions, 1, test.reason)
		for _, hub := range test.hubs {
			require.Empty(t, hub.Cleaners, "the options of the caller are not changed")
		}
	}
}

// TestPruneGate checks that both the hub's state and the caller's gate withhold deletions.
func TestPruneGate(t *testing.T) {
	inconsistent := errors.New("the hub was restored")
	hub := agent.Hub{MayPrune: func(context.Context) error { return inconsistent }}
	closed := func(context.Context) string { return "maintenance" }
	require.Equal(t, "the hub was restored", pruneGate(hub, closed)(t.Context()))
	inconsistent = nil
	require.Equal(t, "maintenance", pruneGate(hub, closed)(t.Context()))
	require.Empty(t, pruneGate(hub, nil)(t.Context()))
}

// TestOnOrphans checks that orphaned objects are reported to the hub and to the caller.
func TestOnOrphans(t *testing.T) {
	var reported []v1alpha1.OrphanSummary
	var called []workagent.OrphanSummary
	hub := agent.Hub{ReportOrphans: func(s v1alpha1.OrphanSummary) { reported = append(reported, s) }}
	summary := workagent.OrphanSummary{Works: 2, Objects: 3, First: []string{"cart", "shop"}}
	onOrphans(hub, func(s workagent.OrphanSummary) { called = append(called, s) })(summary)
	onOrphans(hub, nil)(workagent.OrphanSummary{})
	require.Equal(t, []v1alpha1.OrphanSummary{{Works: 2, Objects: 3, WorkNames: []string{"cart", "shop"}}, {}}, reported)
	require.Equal(t, []workagent.OrphanSummary{summary}, called)
}

func TestHubOptions_UnknownPart(t *testing.T) {
	options := HubOptions{Without: []Part{"Scheduler"}}
	require.ErrorContains(t, options.validate(), `Without: has "Scheduler"`)
}
