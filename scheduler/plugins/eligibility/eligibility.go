package eligibility

import (
	"context"

	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "Eligibility"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.BatchFilterPlugin = plugin{}
	_ scheduler.HintPlugin        = plugin{}
)

func (plugin) Name() string { return Name }

var (
	notJoined = scheduler.Reject("has not joined the fleet")
	leaving   = scheduler.Reject("is leaving the fleet")
	unhealthy = scheduler.Reject("is not known to be healthy")
)

func (plugin) Filter(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	slot, there := state.Snapshot().Slot(cluster.Name)
	switch bound := there && state.Bound().Has(slot); {
	case !cluster.Joined && (!bound || cluster.Leaving):
		return notJoined
	case cluster.Leaving:
		return leaving
	case cluster.Healthy || bound:
		return nil
	default:
		return unhealthy
	}
}

func (plugin) FilterAll(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	well := state.Snapshot().Where("eligibility:well", func(c *scheduler.Cluster) bool {
		return c.Joined && !c.Leaving && c.Healthy
	})
	ours := false
	for slot := range state.Bound().All() {
		if well.Has(slot) || state.Snapshot().Cluster(slot).Leaving {
			continue
		}
		if !ours {
			well, ours = well.Clone(), true
		}
		well.Add(slot)
	}
	feasible.Retain(well)
	return nil
}

// Local returns true.
func (plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }

// Hint reports whether the cluster is eligible and was not before.
func (plugin) Hint(_ *scheduler.Request, event scheduler.Event) bool {
	return event.Became(func(c *scheduler.Cluster) bool { return c.Joined && !c.Leaving && c.Healthy })
}
