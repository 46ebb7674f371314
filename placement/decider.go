package placement

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/muster-sdk/muster/scheduler"
)

// callDecider calls the Decider, and converts a panic to an error. If the Decider does not return in time, the call
// continues in its goroutine, and the Decider is not called again for this placement until it has returned.
func (d *decisionController) callDecider(ctx context.Context, p *placementState, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	if p.deciderCall != nil {
		select {
		case <-p.deciderCall:
			p.deciderCall = nil
		default:
			return scheduler.Result{}, errors.New("the Decider has not returned from its previous call")
		}
	}
	started := d.Clock.Now()
	defer func() { d.metrics.seconds.Observe(d.Clock.Since(started).Seconds()) }()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	var result scheduler.Result
	err := errors.New("the Decider ended its goroutine")
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("the Decider panicked: %v", reason)
				d.log.Error(err, "Decider panicked", "placement", request.Name, "stack", string(debug.Stack()))
			}
		}()
		result, err = d.Decider.Schedule(ctx, snapshot, request)
	}()
	select {
	case <-back:
		return result, err
	case <-ctx.Done():
	}
	select {
	case <-back:
		return result, err
	case <-time.After(grace): // most Deciders return when their context ends
		p.deciderCall = back
		return scheduler.Result{}, fmt.Errorf("the Decider did not return: %w", ctx.Err())
	}
}

// grace is the time in which a Decider must return after its context has ended.
const grace = 100 * time.Millisecond
