package division

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/selector"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// Division is a compiled [v1alpha1.ReplicaDivision]. It may be used concurrently.
type Division struct {
	strategy v1alpha1.DivisionStrategy
	weights  []weight // none: all clusters have equal weights
	objects  []v1alpha1.ObjectSelector
}

type weight struct {
	clusters selector.Clusters
	of       int64
}

// Cluster is a cluster that gets objects.
type Cluster struct {
	*scheduler.Cluster
	// Objects are the objects of the cluster, after overrides. They are shared, and are not changed.
	Objects []bundle.Object
	// Current is the number of replicas of each workload that the cluster was assigned before: see [Division.Current].
	// Workloads that were not assigned to it are missing.
	Current map[bundle.Key]int32
	// Part states whether the cluster gets its share now. The zero value is [Takes].
	Part Part
}

// Part is the role of a cluster in a division.
type Part int

const (
	// Takes means that the cluster gets a share.
	Takes Part = iota
	// Keeps means that the cluster keeps Current, because it cannot be changed now. The other clusters divide the rest.
	// Its Share has no objects.
	Keeps
	// Waits means that the cluster gets its share later. The other clusters leave this share free, unless one of them has
	// these replicas already: the total of the clusters with Takes does not fall below their present total or the number
	// to divide. The cluster's own Share in the Result must not be applied now.
	Waits
)

// Result is the result of [Division.Divide].
type Result struct {
	// Clusters are in the order of the argument.
	Clusters []Share
	// Unplaced are the workloads with replicas for which there is no room, in the order of the objects.
	Unplaced []Unplaced
}

// Share is the result for one cluster.
type Share struct {
	// Objects are the objects of the cluster, with spec.replicas set in workloads that are divided. If no number changes,
	// they are the objects of the argument.
	Objects []bundle.Object
	// Replicas is the total of all workloads, up to 2147483647.
	Replicas int32
}

// Unplaced is a workload for which there is not enough room.
type Unplaced struct {
	Workload bundle.Key
	// Replicas is the number of replicas without room.
	Replicas int64
}

// New compiles a division. It retains nothing of the spec. The error contains all problems with their fields, as
// [v1alpha1.ReplicaDivision.Validate] reports them, or the CEL expressions that cannot be compiled, as in
// weights[1].clusters.cel[0].
func New(spec *v1alpha1.ReplicaDivision) (*Division, error) {
	if errs := spec.Validate(nil); len(errs) > 0 {
		return nil, fmt.Errorf("invalid division of replicas: %w", errs.ToAggregate())
	}
	d := &Division{strategy: spec.Strategy, weights: make([]weight, len(spec.Weights))}
	for i := range spec.Objects {
		d.objects = append(d.objects, *spec.Objects[i].DeepCopy())
	}
	var errs []error
	for i := range spec.Weights {
		clusters, err := selector.ForClusters(&spec.Weights[i].Clusters, field.NewPath("weights").Index(i).Child("clusters"))
		d.weights[i] = weight{clusters, int64(spec.Weights[i].Weight)}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("invalid division of replicas: %w", err)
	}
	return d, nil
}

// Divide divides the replicas of the objects among the clusters. objects are the objects that all clusters share. room
// returns the number of additional replicas of a workload for which a cluster has room, like a [replicas.Estimator]. A
// negative number counts as 0. If room is nil, it is [replicas.Unbounded] everywhere. Divide calls room only for the
// [Division.Workloads].
//
// The Result is complete even if there is an error. The error is an [*Error], or several joined ones in the order of
// the objects, one for each workload that cannot be divided. The clusters of such a workload keep the replicas that
// they were assigned before; other clusters get none.
//
// Equal arguments have equal results, independently of the order of the clusters. Divide does not change its arguments.
func (d *Division) Divide(objects []bundle.Object, clusters []Cluster,
	room func(workload bundle.Key, cluster string) int32) (Result, error) {
	if d.strategy == v1alpha1.DivisionDuplicated {
		return Result{Clusters: d.duplicate(clusters)}, nil
	}
	if room == nil {
		room = func(bundle.Key, string) int32 { return replicas.Unbounded }
	}
	r := round{d, clusters, d.weightsOf(clusters), room}
	result := Result{Clusters: make([]Share, len(clusters))}
	for i := range clusters {
		if clusters[i].Part == Keeps {
			continue
		}
		result.Clusters[i].Objects = clusters[i].Objects
	}
	var errs []error
	for _, w := range d.find(objects, clusters) {
		shares, left, err := r.divide(w)
		if err != nil {
			errs = append(errs, err)
			shares = r.existing(w)
		}
		r.write(&result, w, shares)
		if left > 0 {
			result.Unplaced = append(result.Unplaced, Unplaced{w.key, left})
		}
	}
	return result, errors.Join(errs...)
}
