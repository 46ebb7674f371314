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

// collectTimeout is the timeout of a collector. resourceTimeout is the timeout of the built-in collector that lists
// all pods.
const (
	collectTimeout  = 10 * time.Second
	resourceTimeout = time.Minute
)

// A PropertyCollector collects properties of the member. Placements can select members by these properties.
//
// Collect has a timeout of ten seconds. It must return when its context ends. Until it returns it is not called again,
// its last properties are kept, and the condition PropertiesCollected of the Membership contains its name, as after an
// error. It does not delay other collectors. If several collectors return the same property, the first one is kept:
// the built-in collectors are first, then the others in order.
type PropertyCollector interface {
	// Name identifies the collector in logs and conditions.
	Name() string
	Collect(ctx context.Context) ([]v1alpha1.Property, error)
}

// CollectorFunc returns a [PropertyCollector] with a name that calls a function.
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

// source is a built-in collector or a collector of the user.
type source struct {
	name    string
	timeout time.Duration
	collect func(context.Context) (finding, error)

	// Under the collection's lock.
	running bool
	found   finding // the last result
	failed  bool    // the last call failed
	known   bool    // a call succeeded
}

// finding is the result of a source. A source sets only its own fields.
type finding struct {
	version    string
	resources  *v1alpha1.ResourceUsage
	properties []v1alpha1.Property
	apis       []v1alpha1.ServedAPIs
}

// collection runs all sources concurrently.
type collection struct {
	log     logr.Logger
	sources []*source
	news    func() // called for a result, or a timeout, after its round

	wg sync.WaitGroup // of the running sources
	mu sync.Mutex
	// asking is true during a round. The caller of round is notified at its end, so single results need no notification.
	asking bool
}

// round calls each source that is not still running from an earlier round. It returns when all sources have returned,
// or after collectTimeout, so that slow sources do not delay others.
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

// ask returns when the source has returned, and reports a timeout.
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

// quietly suppresses notifications until the returned function is called.
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
		return // the agent stops
	}
	c.emit()
	if s.failed = err != nil; s.failed {
		c.log.Error(err, "A collector failed, its previous result is kept", "collector", s.name)
		return
	}
	s.found, s.known = found, true
}

func (c *collection) late(ctx context.Context, s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.running && ctx.Err() == nil {
		s.failed = true
		c.emit()
		c.log.Info("A collector did not return in time, its previous result is kept", "collector", s.name, "timeout",
			s.timeout)
	}
}

func (c *collection) emit() {
	if !c.asking {
		c.news()
	}
}

// wait waits for sources that did not return in time.
func (c *collection) wait() { c.wg.Wait() }

// facts are the collected facts about the member.
type facts struct {
	version    string                  // empty: unknown
	resources  *v1alpha1.ResourceUsage // nil: unknown
	properties []v1alpha1.Property
	apis       servedAPIs
	// partial is true while a source has not succeeded since the agent was started. Until then the previously reported
	// properties stay: a short outage of a source must not remove the member from placements.
	partial  bool
	problems problems
}

// over returns the properties to report, given the previously reported ones.
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
			all.resources, all.problems.resources = boundedResources(s.found.resources)
		}
		if s.name == sourceAPIs {
			all.apis = servedAPIs{reported: true, known: s.known, all: s.found.apis}
		}
		all.partial = all.partial || !s.known
		properties = append(properties, s.found.properties...)
	}
	all.properties = bounded(properties, &all.problems)
	return all
}

// property returns a property with one of the built-in names.
func property(name, format string, args ...any) []v1alpha1.Property {
	value := fmt.Sprintf(format, args...)
	if value == "" {
		return nil
	}
	return []v1alpha1.Property{{Name: name, Value: value}}
}
