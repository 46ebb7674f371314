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

// A Step tells how far a function is. The same Doing comes again when its Detail has changed, and at last when it is Done; one that
// fails is not Done, and its error is that of the function.
type Step struct {
	// Doing is what is being done, such as "wait until east has joined".
	Doing string
	// Detail is what that waits for, or, when it is done, what came of it. It may be empty.
	Detail string
	// Done is true when it has been done.
	Done bool
}

// poll is how often something is looked at that is waited for.
const poll = 500 * time.Millisecond

// teller tells steps to whoever wants to know.
type teller func(Step)

func (t teller) tell(step Step) {
	if t != nil {
		t(step)
	}
}

// do tells of a step and takes it.
func (t teller) do(doing string, act func() (detail string, err error)) error {
	t.tell(Step{Doing: doing})
	detail, err := act()
	if err != nil {
		return err
	}
	t.tell(Step{Doing: doing, Detail: detail, Done: true})
	return nil
}

// prepare has the caller install what it needs on the member.
func (t teller) prepare(ctx context.Context, member *cluster, act func(context.Context, client.Client) error) error {
	if act == nil {
		return nil
	}
	return t.do("prepare the member", func() (string, error) { return "", member.explain("prepare the member", act(ctx, member)) })
}

// seen is what a look at something that is waited for has shown.
type seen struct {
	done   bool
	detail string // what came of it, or why it is not done yet
}

// await looks until the thing is done, for no longer than patience. An error ends it, but for one that may pass by itself.
func (t teller) await(ctx context.Context, doing string, patience time.Duration, look func(context.Context) (seen, error)) error {
	real := clock.RealClock{}
	began := real.Now()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := real.NewTicker(poll)
	defer ticker.Stop()

	told := Step{Doing: doing}
	t.tell(told)
	reason := "there was no time to look"
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
		if step != told {
			t.tell(step)
			told = step
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

// passing reports whether an error may go away without anybody doing something about it.
func passing(err error) bool {
	var unreachable *UnreachableError
	return errors.As(err, &unreachable) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsConflict(err)
}
