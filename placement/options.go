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

// Decider decides which clusters a placement selects. [*scheduler.Scheduler] implements it. Its methods are called
// concurrently, but Schedule not for the same placement.
type Decider interface {
	// Schedule selects clusters of the snapshot, and prefers those in the request's Bound to equal ones. An error, a
	// panic or a timeout changes no decision, and the controller tries again later.
	//
	// The Result must have Chosen, Wanted and Total. It must have RejectedBy if only plugins rejected the missing
	// clusters, and Until if the decision expires.
	Schedule(ctx context.Context, snapshot *scheduler.Snapshot, request *scheduler.Request) (scheduler.Result, error)
	// MayHelp reports whether an event may help a placement for which one of these plugins, named by RejectedBy, rejected
	// clusters. A false positive costs one decision. MayHelp is not called for clusters that the placement is on: their
	// changes always cause a decision, except for changes of Available, Scores and Placements, which never do.
	MayHelp(request *scheduler.Request, rejectedBy []string, event scheduler.Event) bool
}

// Options are the options of the controller. The zero value is valid.
type Options struct {
	// Decider decides. Nil: a scheduler with the plugins and the default profile of muster.
	Decider Decider
	// Clusters provides the clusters. Nil: the MemberClusters of the manager's cache.
	Clusters ClusterSource
	// Ready reports whether the workloads of a placement are ready on a cluster, for failover policies that wait for a
	// replacement and for disruption budgets. Nil: they are ready on every healthy cluster.
	Ready Readiness
	// Removals reports which clusters without an object were removed on request. Nil: a chosen cluster whose removal the
	// controller did not observe stays chosen until it is evicted.
	Removals Removals
	// Deliveries reports which clusters have objects of a Placement. Nil: a Placement that is deleted and created again is
	// decided like a new one, which can delete workloads on clusters that it does not select again.
	Deliveries Deliveries
	// Tenancy restricts the clusters that the Placements of a namespace can choose. Nil: every Placement can choose every
	// cluster, for products without tenants.
	Tenancy Tenancy
	// Workers is the number of placements that are decided concurrently. Zero: 4.
	Workers int
	// Timeout is the maximum duration of one decision, without its writes. Zero: 30 s.
	Timeout time.Duration
	// Clock provides the time. Nil: the system's clock.
	Clock clock.Clock
}

const (
	defaultWorkers = 4
	defaultTimeout = 30 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.Decider == nil {
		decider, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(),
			Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
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
