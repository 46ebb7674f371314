package assembly

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/clusterapi"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/push"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
)

// TestAgentOptions_EachHubHasItsOwnCleaner checks that the cleaner for one hub never cleans up for another. With
// several hubs, each has a cleaner, and the agent itself has none.
func TestAgentOptions_EachHubHasItsOwnCleaner(t *testing.T) {
	member := &rest.Config{Host: "https://member"}
	for _, test := range []struct {
		reason   string
		hubs     []agent.HubOptions
		cleaners []int // numbers of cleaners of each hub, and of the agent
	}{
		{"without names of hubs, the agent has the cleaner", nil, []int{1}},
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

// TestPushAgent checks that the agent of a member with joinMode Push has the companion that applies Works and its
// cleaner, that an invalid option is reported instead of an agent without them, and that the options of the caller do
// not change.
func TestPushAgent(t *testing.T) {
	custom := agent.CompanionFunc("mine", func(context.Context, agent.Hub) error { return nil })
	options := AgentOptions{Membership: agent.Options{Companions: []agent.Companion{custom}}}
	for _, host := range []string{"https://east", "https://west"} {
		got := PushAgent(options)(fleet.Connected{Config: &rest.Config{Host: host}})
		require.Equal(t, host, got.Member.Host)
		require.Len(t, got.Companions, 2)
		require.Equal(t, "works", got.Companions[0].Name())
		require.Len(t, got.Cleaners, 1)
	}
	require.Len(t, options.Membership.Companions, 1)

	options.WithoutWorks = true
	got := PushAgent(options)(fleet.Connected{Config: &rest.Config{Host: "https://east"}})
	require.Len(t, got.Companions, 1)
	require.Empty(t, got.Cleaners)

	got = PushAgent(AgentOptions{Works: workagent.Options{Workers: -1}})(
		fleet.Connected{Config: &rest.Config{Host: "https://east"}})
	require.Error(t, got.Companions[0].Run(t.Context(), agent.Hub{}))
	_, err := got.Cleaners[0].Remaining(t.Context(), membership.Member{})
	require.Error(t, err, "a leave must not end while the objects cannot be removed")
}

func TestHubOptions_UnknownPart(t *testing.T) {
	options := HubOptions{Without: []Part{"Scheduler"}}
	require.ErrorContains(t, options.validate(), `Without: has "Scheduler"`)
}

// TestConnections_Validate checks that the hub has the runner for the join mode of imported Clusters.
func TestConnections_Validate(t *testing.T) {
	const noPush, noInstall = "Connections.Push: is required", "Connections.Install: is required"
	imported := func(mode v1alpha1.JoinMode) *clusterapi.Options {
		return &clusterapi.Options{Namespaces: []string{"clusters"}, JoinMode: mode}
	}
	for _, test := range []struct {
		connections *Connections
		want        string // a part of the error; empty: none
	}{
		{nil, ""},
		{&Connections{}, ""},
		{&Connections{ClusterAPI: imported("")}, noPush},
		{&Connections{ClusterAPI: imported(v1alpha1.JoinPush), Install: &install.Options{}}, noPush},
		{&Connections{ClusterAPI: imported(v1alpha1.JoinInstall), Push: &push.Options{}}, noInstall},
		{&Connections{ClusterAPI: imported(""), Push: &push.Options{}}, ""},
		{&Connections{ClusterAPI: imported(v1alpha1.JoinInstall), Install: &install.Options{}}, ""},
	} {
		err := (&HubOptions{Connections: test.connections}).validate()
		if test.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.want)
		}
	}
}
