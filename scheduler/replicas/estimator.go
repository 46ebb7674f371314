package replicas

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Requirements are what one replica needs.
type Requirements struct {
	// Requests are the resources of one replica. List pods, too, if it is to count as one.
	Requests corev1.ResourceList
	// Namespace is where it will run, for estimators that know quotas.
	Namespace string
	// Pod is the spec of its pods, for estimators that know nodes; nil: unknown.
	Pod *corev1.PodSpec
}

// An Estimator tells how many more replicas clusters have room for.
//
// Estimate returns a number for each of the clusters, in their order: none negative, 0 where nothing fits, and
// [Unbounded] where it knows no limit. It returns by the end of its context, may be called concurrently, and
// changes nothing that it is given.
type Estimator interface {
	Estimate(ctx context.Context, r Requirements, clusters []string) ([]int32, error)
}

// EstimatorFunc makes an [Estimator] of a function.
type EstimatorFunc func(ctx context.Context, r Requirements, clusters []string) ([]int32, error)

// Estimate calls the function.
func (f EstimatorFunc) Estimate(ctx context.Context, r Requirements, clusters []string) ([]int32, error) {
	return f(ctx, r, clusters)
}

// FromAvailable is the [Estimator] that goes by the resources that clusters have available, as [Fit] does. They
// are what is free in the whole cluster, so replicas that would not fit on any one node count as well.
//
// The function returns false for a cluster of which it does not know them, which is then Unbounded. It may be
// called concurrently, and what it returns is not changed.
func FromAvailable(available func(cluster string) (corev1.ResourceList, bool)) Estimator {
	return EstimatorFunc(func(_ context.Context, r Requirements, clusters []string) ([]int32, error) {
		more := make([]int32, len(clusters))
		for i, name := range clusters {
			more[i] = Unbounded
			if resources, known := available(name); known {
				more[i] = Fit(resources, r.Requests)
			}
		}
		return more, nil
	})
}
