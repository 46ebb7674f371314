package workset

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// Options are the options of the controller. The zero value is valid.
type Options struct {
	// Clusters provides the clusters. Nil: the MemberClusters of the manager's cache.
	Clusters placement.ClusterSource
	// Namespace returns the namespace of the Works for a cluster, or an empty string if it is unknown. Namespace should
	// not make requests, because it is called often: after each event of the cluster, and every 15 seconds while the
	// namespace is unknown. Nil: status.namespace of the MemberCluster. Namespace is required if Clusters is set, and an
	// error otherwise.
	Namespace func(cluster string) string
	// Allow returns an error with the reason if a WorkSet may not select an object of the hub. A user who can create a
	// WorkSet can use it to read every object that it may select, with the permissions of the controller. Nil: the WorkSet
	// may select the objects in its namespace, and that namespace; see [OwnNamespace]. With Tenancy, SelectionGrants allow
	// more objects. Allow is not called for a ClusterWorkSet, which may select all objects except those that belong to
	// Kubernetes or muster.
	Allow func(owner types.NamespacedName, target Target) error
	// Tenancy restricts what the WorkSets of a namespace distribute to the clusters of each ClusterSetBinding. Nil:
	// nothing is restricted.
	Tenancy placement.Tenancy
	// Estimator estimates for how many more replicas each cluster has capacity. Nil: the estimate is computed from the
	// available resources of the cluster.
	Estimator replicas.Estimator
	// Readiness receives the clusters on which WorkSets are available, for the controller of Placements. Nil: no
	// notification.
	Readiness *Readiness
	// Workers is the number of WorkSets that are reconciled concurrently. Zero: 4.
	Workers int
	// Writers is the number of clusters whose Works are written concurrently. Zero: 16.
	Writers int
	// Clock provides the time. Nil: the system's clock.
	Clock clock.Clock
}

// Target identifies the objects that a WorkSet selects: one object by its name, or the objects of a kind by their
// labels.
type Target = selection.Target

// OwnNamespace is the default of [Options].Allow. It allows namespaced objects in the namespace of the WorkSet, and
// that Namespace by its name, and returns an error for everything else.
func OwnNamespace(owner types.NamespacedName, target Target) error {
	return selection.OwnNamespace(owner, target)
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
		return o, errors.New("workset.Options.Namespace: is required with Clusters, because only the caller knows the " +
			"namespaces")
	}
	if o.Clusters == nil && o.Namespace != nil {
		return o, errors.New("workset.Options.Namespace: must not be set without Clusters, since MemberClusters have " +
			"theirs in their status")
	}
	if ask := o.Namespace; ask != nil {
		o.Namespace = func(cluster string) string {
			namespace, err := guarded(func() (string, error) { return ask(cluster), nil })
			if err != nil {
				return "" // the cluster is skipped while the function panics
			}
			return namespace
		}
	}
	if o.Allow == nil {
		o.Allow = OwnNamespace
	} else {
		ask := o.Allow
		o.Allow = func(owner types.NamespacedName, target Target) error {
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
