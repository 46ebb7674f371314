package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Step reports the progress of a function. A step is reported again when its Detail changes, and finally with Done
// set. A step that fails is not Done; its error is the error of the function.
type Step struct {
	// Doing is the operation, for example "wait until east has joined".
	Doing string
	// Detail is the pending reason or, when the operation is done, its result. Optional.
	Detail string
	// Done is true when the operation has succeeded.
	Done bool
}

// poll is the interval of checks while waiting.
const poll = 500 * time.Millisecond

// reporter reports steps.
type reporter func(Step)

func (t reporter) report(step Step) {
	if t != nil {
		t(step)
	}
}

// do reports and performs a step.
func (t reporter) do(doing string, act func() (detail string, err error)) error {
	t.report(Step{Doing: doing})
	detail, err := act()
	if err != nil {
		return err
	}
	t.report(Step{Doing: doing, Detail: detail, Done: true})
	return nil
}

// prepare calls the Prepare function of the caller.
func (t reporter) prepare(ctx context.Context, member *cluster, act func(context.Context, client.Client) error) error {
	if act == nil {
		return nil
	}
	return t.do("prepare the member",
		func() (string, error) { return "", member.explain("prepare the member", act(ctx, member)) })
}

// seen is one observation while waiting for a state.
type seen struct {
	done   bool
	detail string // the result, or the pending reason
}

// await observes a state until it is done, for at most the timeout. An error ends the wait unless it is temporary.
func (t reporter) await(ctx context.Context, doing string, timeLimit time.Duration,
	look func(context.Context) (seen, error)) error {
	real := clock.RealClock{}
	began := real.Now()
	waiting, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	ticker := real.NewTicker(poll)
	defer ticker.Stop()

	reported := Step{Doing: doing}
	t.report(reported)
	reason := "the timeout is too short for an observation"
	for {
		now, err := look(waiting)
		switch {
		case waiting.Err() != nil && (err != nil || !now.done):
			if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%s: %w: %s", doing, err, reason)
			}
			return &TimeoutError{Doing: doing, After: real.Since(began), Reason: reason}
		case err != nil && !passing(err):
			return err
		case err != nil:
			now.detail = err.Error()
		}
		step := Step{Doing: doing, Detail: now.detail, Done: now.done}
		if step != reported {
			t.report(step)
			reported = step
		}
		if now.done {
			return nil
		}
		reason = now.detail
		select {
		case <-waiting.Done():
		case <-ticker.C():
		}
	}
}

// passing reports whether an error may be temporary.
func passing(err error) bool {
	var unreachable *UnreachableError
	return errors.As(err, &unreachable) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsConflict(err)
}
