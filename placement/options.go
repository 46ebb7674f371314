package placement

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
)

// A Decider decides where something is placed. [*scheduler.Scheduler] is one; a product may plug in its own. Its methods are called
// concurrently, though Schedule never twice at a time for one placement.
type Decider interface {
	// Schedule chooses clusters of the snapshot, those that the request is bound to if they are as good as others. An error, a panic,
	// or not to come back in time changes nothing of what was chosen, and is tried again later.
	//
	// The Result needs Chosen, Wanted and Total; RejectedBy, if the only missing clusters were rejected by plugins; and
	// Until, if it does not hold for ever.
	Schedule(ctx context.Context, snapshot *scheduler.Snapshot, request *scheduler.Request) (scheduler.Result, error)
	// MayHelp reports whether an event may turn the no of one of these, which RejectedBy named, into a yes. To say yes in vain only
	// costs a decision. It is not asked about clusters that the placement is on: changes of those are always decided on, but for
	// those of Available, Scores and Placements alone, which are never.
	MayHelp(request *scheduler.Request, rejectedBy []string, event scheduler.Event) bool
}

// Options are what a product can decide. The zero value works; each field says what it then means.
type Options struct {
	// Decider decides. Nil: a scheduler with the plugins and the profile that come with muster.
	Decider Decider
	// Clusters are what is chosen from. Nil: the MemberClusters that the manager's cache has.
	Clusters ClusterSource
	// Ready tells whether what a placement has put on a cluster does its work, for policies of failover that wait for a replacement, and
	// for disruption budgets. Nil: it does as soon as the cluster is published, if that is healthy.
	Ready Readiness
	// Removals reports which clusters without an object were removed on request. Nil: a chosen cluster whose removal the
	// controller did not observe stays chosen until it is evicted.
	Removals Removals
	// Deliveries reports on which clusters the objects of a Placement are. Nil: a Placement that is deleted and created
	// again is decided like a new one, which can delete workloads on clusters that it does not select again.
	Deliveries Deliveries
	// Tenancy restricts the clusters that the Placements of a namespace can choose. Nil: every Placement can choose every
	// cluster, for products without tenants.
	Tenancy Tenancy
	// Workers is how many placements are decided at a time. Zero: 4.
	Workers int
	// Timeout is how long one decision may take, without what is written then. Zero: 30 s.
	Timeout time.Duration
	// Clock tells the time. Nil: the system's.
	Clock clock.Clock
}

const (
	defaultWorkers = 4
	defaultTimeout = 30 * time.Second
)

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
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Timeout < 0 {
		return o, errors.New("placement.Options.Timeout: must not be negative")
	}
	if o.Ready == nil {
		o.Ready = always{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
