package workset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// capacityKey identifies a workload on a cluster.
type capacityKey struct {
	workload bundle.Key
	cluster  string
}

// estimatorCall calls the Estimator of the options, which can fail, panic or hang.
type estimatorCall struct {
	done chan struct{} // closed when an abandoned call has returned; nil: none
}

const (
	// estimateTimeout is the maximum duration of all estimates of one reconcile.
	estimateTimeout = 5 * time.Second
	// grace is how long run waits for an Estimator to return after its context has ended.
	grace = 100 * time.Millisecond
)

// run returns the estimated capacity, which is incomplete if there is an error. A call that does not return in time
// continues in its goroutine. No other call begins before it returns.
func (e *estimatorCall) run(ctx context.Context, estimator replicas.Estimator,
	workloads []division.Workload) (map[capacityKey]int32, error) {
	if e.done != nil {
		select {
		case <-e.done:
			e.done = nil
		default:
			return nil, errors.New("the Estimator has not returned from its previous call")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, estimateTimeout)
	defer cancel()
	type answer struct {
		room map[capacityKey]int32
		err  error
	}
	answers, back := make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(back)
		room, err := estimate(ctx, estimator, workloads)
		answers <- answer{room, err}
	}()
	select {
	case a := <-answers:
		return a.room, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.room, a.err
	case <-time.After(grace): // most Estimators return when their context ends
		e.done = back
		return nil, fmt.Errorf("the Estimator did not return: %w", ctx.Err())
	}
}

func estimate(ctx context.Context, estimator replicas.Estimator,
	workloads []division.Workload) (map[capacityKey]int32, error) {
	room := map[capacityKey]int32{}
	var errs []error
	for _, w := range workloads {
		more, err := guarded(func() ([]int32, error) { return estimator.Estimate(ctx, w.Requirements, w.Clusters) })
		if err == nil && len(more) != len(w.Clusters) {
			err = fmt.Errorf("the number of estimates of the Estimator is %d for %d clusters", len(more), len(w.Clusters))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("estimate the capacity for %s %s: %w", w.Key.Kind, w.Key.Name, err))
			continue
		}
		for i, cluster := range w.Clusters {
			room[capacityKey{w.Key, cluster}] = more[i]
		}
	}
	return room, errors.Join(errs...)
}

// guarded calls a function of the options and turns a panic into an error, so that one WorkSet does not stop the
// others.
func guarded[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panicked: %v", reason)
		}
	}()
	return call()
}
