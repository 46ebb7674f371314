package placement

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/muster-sdk/muster/scheduler"
)

// ask calls the Decider, and converts a panic to an error. If the Decider does not return in time, the call continues
// in its goroutine, and the Decider is not called again for this placement until it has returned.
func (d *decisionController) ask(ctx context.Context, p *placementState, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	if p.asking != nil {
		select {
		case <-p.asking:
			p.asking = nil
		default:
			return scheduler.Result{}, errors.New("the decider has not come back since it was asked before")
		}
	}
	started := d.Clock.Now()
	defer func() { d.metrics.seconds.Observe(d.Clock.Since(started).Seconds()) }()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	var result scheduler.Result
	err := errors.New("the decider has ended its goroutine")
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("the decider panicked: %v", reason)
				d.log.Error(err, "A decider panicked.", "placement", request.Name, "stack", string(debug.Stack()))
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
		p.asking = back
		return scheduler.Result{}, fmt.Errorf("the decider has not come back: %w", ctx.Err())
	}
}

// grace is the time in which a Decider must return after its context has ended.
const grace = 100 * time.Millisecond
