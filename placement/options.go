package placement

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
)

// A Decider decides where something is placed. [*scheduler.Scheduler] is one; a product may plug in its own. Its methods are called
// concurrently.
type Decider interface {
	// Schedule chooses clusters of the snapshot. An error is tried again later.
	Schedule(ctx context.Context, snapshot *scheduler.Snapshot, request *scheduler.Request) (scheduler.Result, error)
	// MayHelp reports whether an event may turn the no of one of these plugins into a yes. To say yes in vain only costs a decision.
	MayHelp(request *scheduler.Request, rejectedBy []string, event scheduler.Event) bool
}

// Options are what a product can decide. The zero value works; each field says what it then means.
type Options struct {
	// Decider decides. Nil: a scheduler with the plugins and the profile that come with muster.
	Decider Decider
	// Clusters are what is chosen from. Nil: the MemberClusters that the manager's cache has.
	Clusters ClusterSource
	// Workers is how many placements are decided at a time. Zero: 4.
	Workers int
	// Clock tells the time. Nil: the system's.
	Clock clock.Clock
}

const defaultWorkers = 4

func (o Options) withDefaults() (Options, error) {
	if o.Decider == nil {
		decider, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(), Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
		if err != nil {
			return o, fmt.Errorf("make the scheduler: %w", err)
		}
		o.Decider = decider
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Workers < 0 {
		return o, errors.New("placement.Options.Workers: must not be negative")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
