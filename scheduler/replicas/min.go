package replicas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// DefaultTimeout is the default timeout of an estimator. It is the same as in Karmada.
const DefaultTimeout = 3 * time.Second

// maxStuck is the number of calls past their deadline at which an estimator is not called any more.
const maxStuck = 8

// MinOptions are the options of [Min]. The zero value of each field is its documented default.
type MinOptions struct {
	// Timeout is the timeout of each estimator. Zero: [DefaultTimeout].
	Timeout time.Duration

	// Report is called with the reason why the result of an estimator was ignored. It must return without blocking. The
	// calls of one Estimate are ordered by the names of the estimators. Nil: reasons are not reported.
	Report func(estimator string, err error)
}

// Min returns an [Estimator] that calls several estimators concurrently, and returns the minimum for each cluster. The
// names are used in reports.
//
// An estimator that fails, panics, returns an invalid result or exceeds its timeout is ignored and reported. If all are
// ignored, Estimate returns an error. Without estimators, all clusters are Unbounded.
//
// Estimate returns at the timeout even if an estimator does not. The goroutine of such a call runs until the estimator
// returns, so the arguments of Estimate must not be changed afterwards. An estimator with 8 calls that have not
// returned is not called until one of them returns.
func Min(estimators map[string]Estimator, o MinOptions) Estimator {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	m := &least{options: o}
	for _, name := range slices.Sorted(maps.Keys(estimators)) {
		m.parts = append(m.parts, &part{name: name, estimator: estimators[name]})
	}
	return m
}

type least struct {
	options MinOptions
	parts   []*part
}

// part is one of the combined estimators.
type part struct {
	name      string
	estimator Estimator
	stuck     atomic.Int32 // calls that have exceeded their deadline
}

func (m *least) Estimate(ctx context.Context, r Requirements, clusters []string) ([]int32, error) {
	limited, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	clusters = slices.Clone(clusters)
	calls := make([]*call, len(m.parts))
	for i, p := range m.parts {
		calls[i] = p.start(limited, r, clusters)
	}

	more := slices.Repeat([]int32{Unbounded}, len(clusters))
	var failed []error
	for i, p := range m.parts {
		estimate, err := calls[i].wait(limited)
		if ctx.Err() != nil {
			continue // the caller's context has ended, which is not an error of the estimator
		}
		if err == nil {
			err = checkEstimate(estimate, len(clusters))
		}
		if err != nil {
			m.options.Report(p.name, err)
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		for j := range more {
			more[j] = min(more[j], estimate[j])
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("estimate for %d clusters: %w", len(clusters), err)
	}
	if len(failed) > 0 && len(failed) == len(m.parts) {
		return nil, fmt.Errorf("no Estimator returned a result: %w", errors.Join(failed...))
	}
	return more, nil
}

func checkEstimate(estimate []int32, clusters int) error {
	if len(estimate) != clusters {
		return fmt.Errorf("the number of estimates of the Estimator is %d for %d clusters", len(estimate), clusters)
	}
	if i := slices.IndexFunc(estimate, func(n int32) bool { return n < 0 }); i >= 0 {
		return fmt.Errorf("estimate %d of cluster %d is negative", estimate[i], i)
	}
	return nil
}

// call is a call of an estimator. The waiting goroutine and the calling goroutine both set over. The second one detects
// that the other was first.
type call struct {
	part   *part
	over   atomic.Bool
	answer chan answer
}

type answer struct {
	estimate []int32
	err      error
}

func (p *part) start(ctx context.Context, r Requirements, clusters []string) *call {
	c := &call{part: p, answer: make(chan answer, 1)}
	if n := p.stuck.Load(); n >= maxStuck {
		c.over.Store(true)
		c.answer <- answer{err: fmt.Errorf("not called, because %d earlier calls have not returned", n)}
		return c
	}
	go func() {
		a := answer{err: errors.New("the Estimator ended its goroutine")}
		defer func() {
			if cause := recover(); cause != nil {
				a.err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
			}
			c.answer <- a
			if !c.over.CompareAndSwap(false, true) {
				p.stuck.Add(-1)
			}
		}()
		a.estimate, a.err = p.estimator.Estimate(ctx, r, clusters)
	}()
	return c
}

func (c *call) wait(ctx context.Context) ([]int32, error) {
	select {
	case a := <-c.answer:
		return a.estimate, a.err
	case <-ctx.Done():
	}
	c.part.stuck.Add(1)
	if c.over.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("the Estimator did not return: %w", ctx.Err())
	}
	c.part.stuck.Add(-1)
	a := <-c.answer
	return a.estimate, a.err
}
