package workset

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/selection"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// Options are what a product can decide. The zero value works; each field says what it then means.
type Options struct {
	// Clusters are what Works can be for. Nil: the MemberClusters that the manager's cache has.
	Clusters placement.ClusterSource
	// Namespace is the one that a cluster's agent has its Works in; empty while there is none. It is asked often, so it should not
	// ask others: each time that something happens to the cluster, and within 15 seconds as long as there is none. Nil:
	// status.namespace of the MemberCluster. Required with Clusters, and an error without.
	Namespace func(cluster string) string
	// Allow decides what a WorkSet may select on the hub: an error says why not. A user who may create a WorkSet can
	// read with it whatever it may select, with the permissions of the controller. Nil: the objects in the WorkSet's
	// namespace, and that namespace.
	Allow func(owner types.NamespacedName, target selection.Target) error
	// Estimator tells for how many more replicas clusters have room. Nil: by what they have available.
	Estimator replicas.Estimator
	// Readiness is notified where WorkSets are available, for the controller of Placements. Nil: no notification.
	Readiness *Readiness
	// Workers is how many WorkSets are decided at a time. Zero: 4.
	Workers int
	// Writers is for how many clusters Works are written at a time. Zero: 16.
	Writers int
	// Clock tells the time. Nil: the system's.
	Clock clock.Clock
}

const (
	defaultWorkers = 4
	defaultWriters = 16
)

func (o Options) withDefaults() (Options, error) {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Workers < 0 {
		return o, errors.New("workset.Options.Workers: must not be negative")
	}
	if o.Writers == 0 {
		o.Writers = defaultWriters
	}
	if o.Writers < 0 {
		return o, errors.New("workset.Options.Writers: must not be negative")
	}
	if o.Clusters != nil && o.Namespace == nil {
		return o, errors.New("workset.Options.Namespace: is required with Clusters, of which nobody else knows the namespaces")
	}
	if o.Clusters == nil && o.Namespace != nil {
		return o, errors.New("workset.Options.Namespace: must not be set without Clusters, since MemberClusters have theirs in their status")
	}
	if ask := o.Namespace; ask != nil {
		o.Namespace = func(cluster string) string {
			namespace, err := guarded(func() (string, error) { return ask(cluster), nil })
			if err != nil {
				return "" // as long as it does, the cluster is left alone
			}
			return namespace
		}
	}
	if ask := o.Allow; ask != nil {
		o.Allow = func(owner types.NamespacedName, target selection.Target) error {
			refused, err := guarded(func() (error, error) { return ask(owner, target), nil })
			return errors.Join(refused, err)
		}
	}
	if o.Readiness == nil {
		o.Readiness = NewReadiness()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
