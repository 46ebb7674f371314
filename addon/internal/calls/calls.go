// Package calls has functions of others called, and waits for none of them for ever.
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
	// ErrOverdue is the error of a function that did not return in time. It is worth another try later.
	ErrOverdue = errors.New("took longer than")
	// ErrBusy is the error of a call that was not made, since as many of its group as may be are waited for. Its owner is told when there is room.
	ErrBusy = errors.New("as many calls as may be at a time have not returned yet")

	errEnded = errors.New("ended its goroutine")
)

// Key is what there is one call of at a time.
type Key struct {
	// Owner is whom the function is called for.
	Owner types.NamespacedName
	// Function is its name as errors have it, such as "Manifests of add-on logs".
	Function string
	// Subject is what the function is asked about, if it is asked about several things for one owner.
	Subject string
	// Group is of which calls there is a limited number at a time. Empty: any number.
	Group string
}

// Options of a Caller. All must be set.
type Options struct {
	// Timeout is how long is waited for a function. Its context ends then.
	Timeout time.Duration
	// Limit is how many calls of a group are waited for at a time.
	Limit int
	// Free is called when an owner that was told [ErrBusy] can try again. It must return at once.
	Free func(owner types.NamespacedName)
}

// Caller remembers which calls have not returned. Make it by [New]. It may be used concurrently.
type Caller struct {
	options Options

	mu      sync.Mutex
	calls   map[Key]call
	waited  map[string]int                    // calls that are waited for, by group
	refused map[string][]types.NamespacedName // who is to be told when there is room in a group, in their order
}

// call is one that has not returned, or that was overdue the last time.
type call struct {
	out     bool
	since   time.Time // when it was made
	overdue int       // how often in a row
	again   time.Time // not before it is made again
}

// New makes a Caller.
func New(o Options) *Caller {
	return &Caller{options: o, calls: map[Key]call{}, waited: map[string]int{}, refused: map[string][]types.NamespacedName{}}
}

// Do calls a function and returns what it does; what it panics with is an error. A function that has not returned when the time is over goes on, with
// a context that has ended, and its result is lost: the error is [ErrOverdue]. As long as it has not returned it is not called again for that key, and
// afterwards not before a pause: as long as the timeout, and longer, up to four times that, each time that it is overdue once more.
func Do[T any](ctx context.Context, c *Caller, k Key, function func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	if err := c.begin(k); err != nil {
		return *new(T), err
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

// Forget forgets what an owner is told and waits for, since there is none any more. What has not returned is remembered until it does.
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

// begin takes down that a call is made, or says why not.
func (c *Caller) begin(k Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, last := time.Now(), c.calls[k]
	switch {
	case last.out:
		return fmt.Errorf("%w and has not returned since %s: it is not called again before it does", c.overdue(k), last.since.UTC().Format(time.RFC3339))
	case now.Before(last.again):
		return c.overdue(k)
	case k.Group != "" && c.waited[k.Group] >= c.options.Limit:
		if !slices.Contains(c.refused[k.Group], k.Owner) {
			c.refused[k.Group] = append(c.refused[k.Group], k.Owner)
		}
		return fmt.Errorf("%s is not called now: %w", k.Function, ErrBusy)
	}
	c.waited[k.Group]++
	last.out, last.since = true, now
	c.calls[k] = last
	return nil
}

func (c *Caller) overdue(k Key) error {
	return fmt.Errorf("%s %w %s", k.Function, ErrOverdue, c.options.Timeout)
}

// returned takes down that a call has returned, which may be long after its end.
func (c *Caller) returned(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.calls[k]
	last.out = false
	c.keep(k, last)
}

// end takes down that a call is waited for no more.
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
	// Who is told may need no call any more: all that there is room for are.
	waiting := c.refused[k.Group]
	told := slices.Clone(waiting[:max(0, min(len(waiting), c.options.Limit-c.waited[k.Group]))])
	c.refuse(k.Group, waiting[len(told):])
	c.mu.Unlock()
	for _, owner := range told {
		c.options.Free(owner)
	}
}

// keep keeps of a call what matters later. The lock is held.
func (c *Caller) keep(k Key, of call) {
	if c.calls[k] = of; !of.out && of.overdue == 0 {
		delete(c.calls, k)
	}
}

// refuse keeps who waits for room in a group. The lock is held.
func (c *Caller) refuse(group string, owners []types.NamespacedName) {
	if c.refused[group] = owners; len(owners) == 0 {
		delete(c.refused, group)
	}
}
