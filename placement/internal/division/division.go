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

// Division is a [v1alpha1.ReplicaDivision] that was read. It may be used by many at once.
type Division struct {
	strategy v1alpha1.DivisionStrategy
	weights  []weight // none: all weigh the same
	objects  []v1alpha1.ObjectSelector
}

type weight struct {
	clusters selector.Clusters
	of       int64
}

// Cluster is a cluster that gets objects.
type Cluster struct {
	*scheduler.Cluster
	// Objects are what it gets, after overrides. They are shared, and not changed.
	Objects []bundle.Object
	// Current is how many replicas it was given before, of what it was given any: see [Division.Current].
	Current map[bundle.Key]int32
	// Part says whether it is given its share. The zero value is [Takes].
	Part Part
}

// Part is what a cluster has to do with a division.
type Part int

const (
	// Takes is to be given a share.
	Takes Part = iota
	// Keeps means that the cluster keeps Current, since it cannot be changed now. The others divide the rest. It gets
	// no objects, whatever it has there.
	Keeps
	// Waits is to be given a share later. The others leave its share to it as far as none of them has it: together they
	// are given no less than they have, or than there is. Its own share in the Result is not for now.
	Waits
)

// Result is what all clusters get.
type Result struct {
	// Clusters are in the order given.
	Clusters []Share
	// Unplaced are the workloads of which some replicas fit nowhere, in the order of the objects.
	Unplaced []Unplaced
}

// Share is what one cluster gets.
type Share struct {
	// Objects are those of the cluster, with spec.replicas set where they are divided. If nothing changes they are the
	// ones that were given.
	Objects []bundle.Object
	// Replicas are those of all workloads together, up to 2147483647.
	Replicas int32
}

// Unplaced is a workload that not all replicas of have a place.
type Unplaced struct {
	Workload bundle.Key
	// Replicas is how many have none.
	Replicas int64
}

// New reads a division, and keeps nothing of the spec. The error has all that is wrong with it by its fields, as
// [v1alpha1.ReplicaDivision.Validate] says it, or the CEL expressions that cannot be compiled:
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

// Divide gives each cluster its part of the replicas of the objects, which are as all clusters share them. It asks room
// for how many more replicas of a workload a cluster has room, as a [replicas.Estimator] tells it: less than none is
// none, and nil is [replicas.Unbounded] everywhere. Room is asked about the [Division.Workloads] alone.
//
// The Result is whole, also beside an error. The error is one [*Error], or several joined, in the order of the objects,
// one for each workload that cannot be divided: its clusters keep the replicas that they were given before, and the
// others get none.
//
// Equal arguments have equal results, whatever the order of the clusters. No argument is changed.
func (d *Division) Divide(objects []bundle.Object, clusters []Cluster,
	room func(workload bundle.Key, cluster string) int32) (Result, error) {
	if d.strategy == v1alpha1.DivisionDuplicated {
		return Result{Clusters: d.duplicate(clusters)}, nil
	}
	if room == nil {
		room = func(bundle.Key, string) int32 { return replicas.Unbounded }
	}
	r := round{d, clusters, d.weigh(clusters), room}
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
