package balance

import (
	"context"

	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "Balance"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.PreScorePlugin       = plugin{}
	_ scheduler.BatchScorePlugin     = plugin{}
	_ scheduler.NormalizeScorePlugin = plugin{}
)

func (plugin) Name() string { return Name }

func (plugin) PreScore(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	_ scheduler.Set) *scheduler.Status {
	if used(state).Empty() {
		return scheduler.NothingToDo()
	}
	return nil
}

func used(state *scheduler.CycleState) scheduler.Set {
	return state.Snapshot().Where("balance:used", func(c *scheduler.Cluster) bool { return c.Placements != 0 })
}

func (plugin) Score(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	slot, there := state.Snapshot().Slot(cluster.Name)
	return score(cluster.Placements, there && state.Placed().Has(slot)), nil
}

// score returns the score before normalization. If own is true, the placement of the request is not counted.
func score(placements int, own bool) float64 {
	if own {
		placements = max(placements-1, 0)
	}
	return -float64(placements)
}

func (plugin) ScoreAll(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request, feasible scheduler.Set,
	scores []float64) *scheduler.Status {
	placements := scheduler.Column(state.Snapshot(), "balance", func(c *scheduler.Cluster) int { return c.Placements })
	for slot := range feasible.All() {
		scores[slot] = score(placements[slot], state.Placed().Has(slot))
	}
	return nil
}

func (plugin) NormalizeScore(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request, feasible scheduler.Set,
	scores []float64) *scheduler.Status {
	scheduler.Normalize(feasible, scores)
	return nil
}

// Local returns true as long as no cluster has a count of placements.
func (plugin) Local(state *scheduler.CycleState, _ *scheduler.Request) bool {
	return used(state).Empty()
}
