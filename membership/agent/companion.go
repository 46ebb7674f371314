package agent

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Hub is what a [Companion] gets of the hub.
type Hub struct {
	// Name of the hub in Hubs of [Options]; empty where there is only one. What a companion leaves on the member stays there when the agent goes to
	// another hub, so a companion has to tell apart what belongs to which: that of package work/agent by its HubName.
	Name string
	// Config reaches the hub as the member, over connections that the companion shares with nobody. Each request is
	// authenticated by the credential that the agent has at the time, so what is made of it, such as clients and caches,
	// outlives renewals: a certificate's closes the connections, and watches are opened anew. HubConfig of [Options] has
	// had its say; without one there is no limit to the rate. It is the companion's to change.
	Config *rest.Config
	// MayPrune returns nil if the absence or the deletion of an object in the member's namespace on the hub is what a user
	// asked for, and an error that says why not otherwise: the hub was restored and has not confirmed that it is consistent,
	// the Membership cannot be seen, or the namespace itself is being deleted. A companion asks before it deletes anything
	// on the member for that reason, and asks again later after an error. It may be called concurrently.
	MayPrune func(ctx context.Context) error
	// ReportOrphans reports the orphaned objects that the companion keeps on the member: objects that no Work has any more
	// although no user asked for their deletion. The agent writes the last report to the Membership; until the first one,
	// it leaves there what an earlier run reported. It does not block and may be called concurrently.
	ReportOrphans func(v1alpha1.OrphanSummary)
	// Member is whom the companion speaks for, as the agent knew it when it called the companion; Leave may have
	// changed since. What the companion may touch is in Member.Namespace.
	Member membership.Member
}

// A Companion runs beside the agent, with its access to the hub, for as long as the cluster is a member. What applies
// the hub's works on the member is one.
//
// Run is called when the agent has joined; after a restart of the agent, when that has seen that it is still in. It
// goes on while the hub is out of reach, and when the member is told to leave, since the hub may wait for what
// the companion does then. Its context ends when the hub has all back that it had sent, before the first of the Cleaners is
// asked; when the hub shuts the agent out, or has forgotten it; when the agent goes to another of several hubs; and with the agent.
//
// It has ten seconds to return then. After that its Config works no more and the agent goes on, also without it; it is
// not called again before it has returned. When it returns an error, or panics in the goroutine that called it,
// that is logged and told by an Event, and it is called again after a second, later after half a minute. When it returns
// nil it has ended by itself, and is called again when the agent joins anew.
//
// Nothing that it does holds up the heartbeat or the agent. The permissions that it needs on the hub are added
// to those of all agents there, by AgentRules of package hub.
type Companion interface {
	// Name tells the companion from others; it is shown when the companion fails.
	Name() string
	Run(ctx context.Context, hub Hub) error
}

// CompanionFunc makes a [Companion] of a name and a function.
func CompanionFunc(name string, run func(context.Context, Hub) error) Companion {
	return companionFunc{name, run}
}

type companionFunc struct {
	name string
	run  func(context.Context, Hub) error
}

func (c companionFunc) Name() string { return c.name }

func (c companionFunc) Run(ctx context.Context, hub Hub) error { return c.run(ctx, hub) }
