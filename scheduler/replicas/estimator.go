package replicas

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Requirements are the requirements of one replica.
type Requirements struct {
	// Requests are the resource requests of one replica. Include pods to count the replica as one pod.
	Requests corev1.ResourceList
	// Namespace is the namespace of the replica, for estimators that consider quotas.
	Namespace string
	// Pod is the spec of the pods, for estimators that consider nodes. Nil: unknown.
	Pod *corev1.PodSpec
}

// Estimator estimates for how many more replicas clusters have capacity.
//
// Estimate returns one number per cluster, in the order of the clusters. Each number is at least 0, and [Unbounded] if
// the estimator knows no limit. Estimate must return when its context ends, must be safe for concurrent use, and must
// not change its arguments.
type Estimator interface {
	Estimate(ctx context.Context, r Requirements, clusters []string) ([]int32, error)
}

// EstimatorFunc is an [Estimator] that calls a function.
type EstimatorFunc func(ctx context.Context, r Requirements, clusters []string) ([]int32, error)

// Estimate calls the function.
func (f EstimatorFunc) Estimate(ctx context.Context, r Requirements, clusters []string) ([]int32, error) {
	return f(ctx, r, clusters)
}

// FromAvailable returns an [Estimator] that uses the available resources of clusters, as [Fit] does. Available
// resources are totals for the whole cluster, so replicas that do not fit on any single node are counted too.
//
// The function returns false for a cluster whose available resources are unknown; the estimate is then Unbounded. The
// function may be called concurrently, and its result is not changed.
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
