// Package calls invokes functions of add-ons with a timeout and a limit for concurrent calls.
package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrOverdue means that a function did not return before its timeout. The call can be retried later.
	ErrOverdue = errors.New("took longer than")
	// ErrBusy means that a function was not called because the limit of its group is reached. Options.Free is called for
	// the owner when a call is possible.
	ErrBusy = errors.New("too many concurrent calls")

	errEnded = errors.New("ended its goroutine")
)

// Key identifies a call. There is at most one call at a time for each key.
type Key struct {
	// Owner is the object for which the function is called.
	Owner types.NamespacedName
	// Function is the name of the function in errors, for example "Manifests of add-on logs".
	Function string
	// Subject distinguishes several calls of the function for one owner. Optional.
	Subject string
	// Group is the group of calls to which Limit applies. Empty: no limit.
	Group string
}

// Options are the options of a Caller. All fields are required.
type Options struct {
	// Timeout is the maximum duration of a call. The context of the function ends then.
	Timeout time.Duration
	// Limit is the maximum number of concurrent calls of a group.
	Limit int
	// Free is called when an owner whose call failed with [ErrBusy] can retry. It must not block.
	Free func(owner types.NamespacedName)
	// Observe is called with the duration and the error of each call that was made, as Do returns them. It is called
	// concurrently and must not block.
	Observe func(k Key, took time.Duration, err error)
}

// Caller tracks calls that have not returned. Create it with [New]. It is safe for concurrent use.
type Caller struct {
	options Options

	mu      sync.Mutex
	calls   map[Key]call
	waited  map[string]int                    // pending calls by group
	refused map[string][]types.NamespacedName // the owners that wait for a group, in order
}

// call is the state of a call that has not returned, or whose last attempt was overdue.
type call struct {
	out     bool
	since   time.Time // the start of the call
	overdue int       // consecutive overdue calls
	again   time.Time // the earliest time of the next call
}

// New returns a Caller.
func New(o Options) *Caller {
	return &Caller{options: o, calls: map[Key]call{}, waited: map[string]int{},
		refused: map[string][]types.NamespacedName{}}
}

// Do calls a function and returns its result. A panic is returned as an error. If the function does not return before
// the timeout, it continues with a canceled context, its result is discarded, and the error is [ErrOverdue]. The
// function is not called again for the key until it has returned and a pause has passed: one timeout, and up to four
// timeouts after consecutive overdue calls.
func Do[T any](ctx context.Context, c *Caller, k Key, function func(context.Context) (T, error)) (T, error) {
	if err := c.begin(k); err != nil {
		return *new(T), err
	}
	began := time.Now()
	result, err := await(ctx, c, k, function)
	c.options.Observe(k, time.Since(began), err)
	return result, err
}

// await calls a function that is registered, and returns its result.
func await[T any](ctx context.Context, c *Caller, k Key, function func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	within, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, ErrOverdue)
	defer cancel()
	returned := make(chan outcome, 1)
	go func() {
		o := outcome{err: errEnded}
		defer func() {
			if reason := recover(); reason != nil {
				o.err = fmt.Errorf("panicked: %v", reason)
			}
			c.returned(k)
			returned <- o
		}()
		o.result, o.err = function(within)
	}()
	var o outcome
	select {
	case o = <-returned:
	case <-within.Done():
		o.err = within.Err()
	}
	switch overdue := within.Err() != nil && o.err != nil; {
	case overdue && ctx.Err() != nil:
		c.end(k, false)
		return *new(T), fmt.Errorf("%s: %w", k.Function, context.Cause(ctx))
	case overdue:
		c.end(k, true)
		return *new(T), c.overdue(k)
	}
	c.end(k, false)
	return o.result, o.err
}

// Forget removes the state of an owner that no longer exists. Calls that have not returned are tracked until they
// return.
func (c *Caller) Forget(owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, of := range c.calls {
		if k.Owner == owner {
			c.keep(k, call{out: of.out, since: of.since})
		}
	}
	for group, owners := range c.refused {
		c.refuse(group, slices.DeleteFunc(owners, func(o types.NamespacedName) bool { return o == owner }))
	}
}

// begin registers a call, or returns why it is not possible.
func (c *Caller) begin(k Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, last := time.Now(), c.calls[k]
	switch {
	case last.out:
		return fmt.Errorf("%w and has not returned since %s: the call is repeated after the function returns", c.overdue(k),
			last.since.UTC().Format(time.RFC3339))
	case now.Before(last.again):
		return c.overdue(k)
	case k.Group != "" && c.waited[k.Group] >= c.options.Limit:
		if !slices.Contains(c.refused[k.Group], k.Owner) {
			c.refused[k.Group] = append(c.refused[k.Group], k.Owner)
		}
		return fmt.Errorf("%s is not called: %w", k.Function, ErrBusy)
	}
	c.waited[k.Group]++
	last.out, last.since = true, now
	c.calls[k] = last
	return nil
}

func (c *Caller) overdue(k Key) error {
	return fmt.Errorf("%s %w %s", k.Function, ErrOverdue, c.options.Timeout)
}

// returned registers the return of a call, which may be long after its timeout.
func (c *Caller) returned(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.calls[k]
	last.out = false
	c.keep(k, last)
}

// end registers that a call is no longer awaited.
func (c *Caller) end(k Key, overdue bool) {
	c.mu.Lock()
	last := c.calls[k]
	if overdue {
		last.again = time.Now().Add(c.options.Timeout << min(last.overdue, 2))
		last.overdue++
	} else {
		last.overdue, last.again = 0, time.Time{}
	}
	c.keep(k, last)
	if c.waited[k.Group]--; c.waited[k.Group] == 0 {
		delete(c.waited, k.Group)
	}
	// A notified owner may not need a call any more, so all owners for which there is room are notified.
	waiting := c.refused[k.Group]
	notified := slices.Clone(waiting[:max(0, min(len(waiting), c.options.Limit-c.waited[k.Group]))])
	c.refuse(k.Group, waiting[len(notified):])
	c.mu.Unlock()
	for _, owner := range notified {
		c.options.Free(owner)
	}
}

// keep stores the state of a call if it is needed later. The lock must be held.
func (c *Caller) keep(k Key, of call) {
	if c.calls[k] = of; !of.out && of.overdue == 0 {
		delete(c.calls, k)
	}
}

// refuse stores the owners that wait for a group. The lock must be held.
func (c *Caller) refuse(group string, owners []types.NamespacedName) {
	if c.refused[group] = owners; len(owners) == 0 {
		delete(c.refused, group)
	}
}
