// Package companion adds the agent of Works to an agent of membership. Two lines are needed, one for the companion
// and one for the cleaner:
//
//	options := agent.Options{}
//	options.Companions = append(options.Companions, companion.New(workagent.Options{Member: member}))
//	options.Cleaners = append(options.Cleaners, companion.Cleaner(workagent.Options{Member: member}))
//
// Package assembly does this for a complete agent. With several hubs, add a Cleaner with the name of the hub to the
// Cleaners of each hub.
package companion

import (
	"context"
	"fmt"
	"sync"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/leave"
)

// New returns the companion that applies the Works of the member. Options.Member is required. The companion sets Hub,
// HubName and Namespace. It withholds deletions while the hub may be inconsistent, and when PruneGate does. It
// reports orphaned objects in the Membership, and to OnOrphans. The name of the companion is leave.Name.
func New(works workagent.Options) agent.Companion {
	return agent.CompanionFunc(leave.Name, func(ctx context.Context, hub agent.Hub) error {
		a, err := workagent.New(optionsFor(hub, works))
		if err != nil {
			return fmt.Errorf("set up the agent of Works: %w", err)
		}
		return a.Start(ctx)
	})
}

// Cleaner returns the cleaner that deletes or releases the objects of Works when the member leaves. It needs Member
// and, with several hubs, HubName of the options of [New]. If the options are invalid, each call returns the error.
func Cleaner(works workagent.Options) membership.LeaveGate {
	cleaner := sync.OnceValues(func() (*workagent.Cleaner, error) { return workagent.NewCleaner(works) })
	return membership.GateFunc(leave.Name, func(ctx context.Context, member membership.Member) ([]string, error) {
		c, err := cleaner()
		if err != nil {
			return nil, fmt.Errorf("set up the cleaner of Works: %w", err)
		}
		return leave.Cleaner(c.Clean).Remaining(ctx, member)
	})
}

// optionsFor returns the options of the agent of Works for one hub.
func optionsFor(hub agent.Hub, works workagent.Options) workagent.Options {
	works.Hub, works.HubName, works.Namespace = hub.Config, hub.Name, hub.Member.Namespace
	works.PruneGate = pruneGate(hub, works.PruneGate)
	if works.HubRestored == nil {
		works.HubRestored = hub.Restored
	}
	works.OnOrphans = onOrphans(hub, works.OnOrphans)
	return works
}

// pruneGate returns a gate that withholds deletions while the hub may be inconsistent, and when the next gate does.
func pruneGate(hub agent.Hub, next workagent.PruneGate) workagent.PruneGate {
	return func(ctx context.Context) string {
		if hub.MayPrune != nil {
			if err := hub.MayPrune(ctx); err != nil {
				return err.Error()
			}
		}
		if next != nil {
			return next(ctx)
		}
		return ""
	}
}

// onOrphans returns a function that reports orphaned objects to the hub, and to the caller's function.
func onOrphans(hub agent.Hub, next func(workagent.OrphanSummary)) func(workagent.OrphanSummary) {
	return func(summary workagent.OrphanSummary) {
		if hub.ReportOrphans != nil {
			hub.ReportOrphans(v1alpha1.OrphanSummary{
				Objects: int64(summary.Objects), Works: int64(summary.Works), WorkNames: summary.First,
			})
		}
		if next != nil {
			next(summary)
		}
	}
}
