package steadiness

import (
	"context"

	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "Steadiness"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.PreScorePlugin   = plugin{}
	_ scheduler.BatchScorePlugin = plugin{}
)

func (plugin) Name() string { return Name }

func (plugin) PreScore(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request,
	_ scheduler.Set) *scheduler.Status {
	if len(request.Bound) == 0 {
		return scheduler.NothingToDo()
	}
	return nil
}

func (plugin) Score(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	if slot, there := state.Snapshot().Slot(cluster.Name); there && state.Bound().Has(slot) {
		return scheduler.MaxScore, nil
	}
	return 0, nil
}

func (plugin) ScoreAll(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request, feasible scheduler.Set,
	scores []float64) *scheduler.Status {
	for slot := range state.Bound().All() {
		if feasible.Has(slot) {
			scores[slot] = scheduler.MaxScore
		}
	}
	return nil
}

// Local returns true.
func (plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }
