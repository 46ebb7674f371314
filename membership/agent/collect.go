package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// collectTimeout is how long a collector has, and resourceTimeout the built-in one that lists all pods.
const (
	collectTimeout  = 10 * time.Second
	resourceTimeout = time.Minute
)

// A PropertyCollector finds out facts about the member that placements can select by.
//
// Collect has ten seconds. It must return when its context ends; until it does it is not called again, the
// properties that it returned last are kept, and the condition PropertiesCollected of the Membership names
// it, as it does after an error. No other collector waits for it. A property whose name another collector took first
// is left out: the built-in ones come first, then the others in their order.
type PropertyCollector interface {
	// Name tells the collector from others; it is shown when the collector fails.
	Name() string
	Collect(ctx context.Context) ([]v1alpha1.Property, error)
}

// CollectorFunc makes a [PropertyCollector] of a name and a function.
func CollectorFunc(name string, collect func(context.Context) ([]v1alpha1.Property, error)) PropertyCollector {
	return collectorFunc{name, collect}
}

type collectorFunc struct {
	name    string
	collect func(context.Context) ([]v1alpha1.Property, error)
}

func (c collectorFunc) Name() string { return c.name }

func (c collectorFunc) Collect(ctx context.Context) ([]v1alpha1.Property, error) {
	return c.collect(ctx)
}

// source is something that is collected, built in or a user's.
type source struct {
	name    string
	timeout time.Duration
	collect func(context.Context) (finding, error)

	// Under the collection's lock.
	running bool
	found   finding // the last that was found
	failed  bool    // the last time
	known   bool    // it has answered once
}

// finding is what a source has found out; each sets what is its own.
type finding struct {
	version    string
	resources  *v1alpha1.ResourceUsage
	properties []v1alpha1.Property
	apis       []v1alpha1.ServedAPIs
}

// collection collects from all sources, side by side.
type collection struct {
	log     logr.Logger
	sources []*source
	news    func() // called when something was found, or not found in time, after its round

	wg sync.WaitGroup // of the sources that are at work
	mu sync.Mutex
	// asking is true during a round, whose end is news enough.
	asking bool
}

// round asks each source that is not still at work from an earlier round. It returns when all have answered, or after
// collectTimeout: those that take longer delay nobody.
func (c *collection) round(ctx context.Context) {
	defer c.quietly()()
	var asked sync.WaitGroup
	for _, s := range c.sources {
		if c.begin(s) {
			asked.Add(1)
			c.wg.Go(func() {
				defer asked.Done()
				c.ask(ctx, s)
			})
		}
	}
	answered := make(chan struct{})
	c.wg.Go(func() {
		asked.Wait()
		close(answered)
	})
	limited, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	select {
	case <-answered:
	case <-limited.Done():
	}
}

// ask returns when the source has returned, and says so when that has not come in time.
func (c *collection) ask(ctx context.Context, s *source) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer context.AfterFunc(limited, func() { c.late(ctx, s) })()
	var found finding
	err := guarded(limited, s.timeout, func(ctx context.Context) (err error) {
		found, err = s.collect(ctx)
		return err
	})
	c.end(ctx, s, found, err)
}

// quietly keeps news back until the function that it returns is called.
func (c *collection) quietly() (over func()) {
	set := func(asking bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asking = asking
	}
	set(true)
	return func() { set(false) }
}

func (c *collection) begin(s *source) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.running {
		return false
	}
	s.running = true
	return true
}

func (c *collection) end(ctx context.Context, s *source, found finding, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.running = false
	if ctx.Err() != nil {
		return // the agent is being stopped
	}
	c.tell()
	if s.failed = err != nil; s.failed {
		c.log.Error(err, "Collecting failed; what was found before is kept.", "collector", s.name)
		return
	}
	s.found, s.known = found, true
}

func (c *collection) late(ctx context.Context, s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.running && ctx.Err() == nil {
		s.failed = true
		c.tell()
		c.log.Info("A collector did not return in time; what it found before is kept.", "collector", s.name, "timeout", s.timeout)
	}
}

func (c *collection) tell() {
	if !c.asking {
		c.news()
	}
}

// wait waits for sources that did not return in time.
func (c *collection) wait() { c.wg.Wait() }

// facts is what has been found out about the member.
type facts struct {
	version    string                  // empty: not known yet
	resources  *v1alpha1.ResourceUsage // nil: not known yet
	properties []v1alpha1.Property
	apis       servedAPIs
	// partial is true while a source has not answered since the agent was started. What the agent said before counts until then: a member that
	// cannot be asked for a moment has not lost what placements have chosen it for.
	partial  bool
	problems problems
}

// over returns the properties to be told, given those that were told before.
func (f *facts) over(before []v1alpha1.Property) []v1alpha1.Property {
	if !f.partial {
		return f.properties
	}
	return bounded(slices.Concat(f.properties, before), &problems{})
}

func (c *collection) facts() facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all facts
	var properties []v1alpha1.Property
	for _, s := range c.sources {
		if s.failed {
			all.problems.failed = append(all.problems.failed, s.name)
		}
		if s.found.version != "" {
			all.version = s.found.version
		}
		if s.found.resources != nil {
			all.resources = s.found.resources
		}
		if s.name == sourceAPIs {
			all.apis = servedAPIs{told: true, known: s.known, all: s.found.apis}
		}
		all.partial = all.partial || !s.known
		properties = append(properties, s.found.properties...)
	}
	all.properties = bounded(properties, &all.problems)
	return all
}

// property is a fact under a name of ours.
func property(name, format string, args ...any) []v1alpha1.Property {
	return []v1alpha1.Property{{Name: name, Value: fmt.Sprintf(format, args...)}}
}
