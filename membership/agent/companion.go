package agent

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Hub is the access to the hub for a [Companion].
type Hub struct {
	// Name of the hub in Hubs of [Options]; empty if there is only one. Objects of a companion stay on the member when
	// the agent switches to another hub, so a companion must record to which hub they belong: package work/agent uses its
	// HubName.
	Name string
	// Config connects to the hub as the member, over connections that no other companion shares. Each request is
	// authenticated with the agent's current credential, so clients and caches stay valid after renewals: the renewal of a
	// certificate closes the connections, and watches are opened again. HubConfig of [Options] has been applied; by
	// default there is no rate limit. The companion may modify it.
	Config *rest.Config
	// MayPrune returns nil if a user requested the absence or the deletion of an object in the member's namespace on the
	// hub, and an error with the reason otherwise: the hub was restored and has not confirmed that it is consistent, the
	// Membership cannot be observed, or the namespace itself is being deleted. A companion must call it before it deletes
	// an object on the member because an object on the hub is absent or being deleted, and must retry after an error. It
	// may be called concurrently.
	MayPrune func(ctx context.Context) error
	// Restored returns a number that increases when the agent observes that the hub was restored to an earlier state;
	// zero: never. It increases before MayPrune permits deletions again. The absence of an object that existed before the
	// restore is not a request of a user. It may be called concurrently.
	Restored func() int64
	// ReportOrphans reports the orphaned objects that the companion keeps on the member: objects that no Work contains any
	// more although no user requested their deletion. The agent writes the last report to the Membership; until the first
	// one, the report of an earlier run stays. It does not block and may be called concurrently.
	ReportOrphans func(v1alpha1.OrphanSummary)
	// ReportPolicy reports which objects the member accepts from this hub. Nil: every object. The agent writes the last
	// report to the Membership; until the first one, the report of an earlier run stays. It does not block and may be
	// called concurrently.
	ReportPolicy func(*v1alpha1.MemberPolicySummary)
	// Member is the companion's member when the companion is called; Leave may have changed since. The companion may
	// access Member.Namespace only.
	Member membership.Member
}

// A Companion runs beside the agent, with its access to the hub, while the cluster is a member. An example is the agent
// that applies Works on the member.
//
// Run is called when the agent has joined or, after a restart of the agent, when the agent has observed that the
// cluster is still a member. It continues while the hub cannot be reached, and while the member leaves, because the
// hub may wait for the companion then. Its context ends when the hub has withdrawn all its objects, before the first
// of the Cleaners runs; when the hub refuses or has deregistered the agent; when the agent switches to another of
// several hubs; and when the agent ends.
//
// Run must then return within ten seconds. After that its Config does not work any more and the agent continues
// without it; Run is not called again before it has returned. If Run returns an error, or panics in the goroutine that
// called it, the error is logged and reported by an Event, and Run is called again after a second, later after half a
// minute. If Run returns nil, it is called again when the agent joins again.
//
// A companion never delays the heartbeat or the agent. The permissions that it needs on the hub are granted to all
// agents, with AgentRules of package hub.
type Companion interface {
	// Name identifies the companion in logs and Events.
	Name() string
	Run(ctx context.Context, hub Hub) error
}

// CompanionFunc returns a [Companion] with a name that calls a function.
func CompanionFunc(name string, run func(context.Context, Hub) error) Companion {
	return companionFunc{name, run}
}

type companionFunc struct {
	name string
	run  func(context.Context, Hub) error
}

func (c companionFunc) Name() string { return c.name }

func (c companionFunc) Run(ctx context.Context, hub Hub) error { return c.run(ctx, hub) }
