package companion

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
)

// TestCompanion_NamesAndInvalidOptions checks that the companion and the cleaner can be added to one agent of
// membership, and that invalid options are an error of both, so that the member does not leave with objects that could
// not be removed.
func TestCompanion_NamesAndInvalidOptions(t *testing.T) {
	works := workagent.Options{Member: &rest.Config{Host: "https://member"}, HubName: "not a label value"}
	companion, cleaner := New(works), Cleaner(works)
	require.Equal(t, "works", companion.Name())
	require.Equal(t, "works", cleaner.Name())
	require.Error(t, companion.Run(t.Context(), agent.Hub{Name: "not a label value", Config: &rest.Config{}}))
	_, err := Cleaner(workagent.Options{}).Remaining(t.Context(), membership.Member{})
	require.ErrorContains(t, err, "set up the cleaner of Works")
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

// TestOptionsFor checks that the agent of Works withholds deletions while the hub may be inconsistent.
func TestOptionsFor(t *testing.T) {
	hub := agent.Hub{
		Name: "one", Member: membership.Member{Namespace: "member-east"},
		MayPrune: func(context.Context) error { return errors.New("the hub was restored") },
	}
	works := optionsFor(hub, workagent.Options{})
	require.Equal(t, "the hub was restored", works.PruneGate(t.Context()))
	require.Equal(t, "member-east", works.Namespace)
	require.Equal(t, "one", works.HubName)
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
