package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// Options are the options of a [Scheduler].
type Options struct {
	// Registry contains the plugins that the profiles name.
	Registry Registry
	// Profiles are the profiles, at least one, with unique names.
	Profiles []Profile
	// Log is the logger of plugins. The scheduler itself does not log: it returns results and errors.
	Log logr.Logger
}

// Scheduler chooses clusters for requests. It keeps only buffers between decisions. All methods may be called
// concurrently.
type Scheduler struct {
	profiles map[string]*profile
	cycles   sync.Pool
}

// New returns a scheduler with the profiles of the options. The error contains all problems, by profile, plugin and
// field.
func New(o Options) (*Scheduler, error) {
	s := &Scheduler{profiles: map[string]*profile{}}
	s.cycles.New = func() any { return &cycle{} }
	var problems []error
	if len(o.Profiles) == 0 {
		problems = append(problems, errors.New("profiles: must have at least one profile"))
	}
	for i, config := range o.Profiles {
		made, err := newProfile(config, o.Registry, o.Log)
		if err == nil && s.profiles[made.name] != nil {
			err = fmt.Errorf("name: duplicate profile %q", made.name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("profiles[%d]: %w", i, err))
			continue
		}
		s.profiles[made.name] = made
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

// Schedule decides which clusters of a snapshot a request gets. If no cluster is feasible, Schedule returns a result
// without clusters and no error. An error means that no decision was possible: a [*PluginError], an invalid policy, a
// profile that does not exist, or the error of the context.
//
// The same snapshot and request always give the same result.
func (s *Scheduler) Schedule(ctx context.Context, snapshot *Snapshot, request *Request) (Result, error) {
	profile, err := s.profileOf(request)
	if err != nil {
		return Result{}, err
	}
	return s.run(ctx, profile, snapshot, request, nil)
}

func (s *Scheduler) profileOf(request *Request) (*profile, error) {
	if request.Policy == nil {
		return nil, errors.New("request.policy: must not be nil")
	}
	name := request.Policy.spec.Profile
	if name == "" {
		name = DefaultProfile
	}
	profile, known := s.profiles[name]
	if !known {
		return nil, fmt.Errorf("policy.profile: profile %q does not exist", name)
	}
	return profile, nil
}

// run executes a cycle in a separate goroutine, because a plugin that does not return cannot be stopped. If the context
// ends first, the cycle is not reused: its goroutine may still access it.
func (s *Scheduler) run(ctx context.Context, profile *profile, snapshot *Snapshot, request *Request,
	record *record) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, profile.timeout)
	defer cancel()
	c := s.cycles.Get().(*cycle)
	c.prepare(profile, snapshot, request, record)
	type outcome struct {
		result Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { done <- o }()
		o.result, o.err = c.run(ctx)
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		select {
		case o = <-done:
		default:
			return Result{}, c.call.timeoutError(ctx)
		}
	}
	c.release()
	s.cycles.Put(c)
	if o.err == nil {
		// The caller may change and reuse its request. The copy has no Previous, so that earlier results can be collected.
		asked := &Request{
			Name: request.Name, Policy: request.Policy, Bound: slices.Clone(request.Bound), Placed: slices.Clone(request.Placed),
			Failover: request.Failover, Now: request.Now,
		}
		o.result.scheduler, o.result.profile, o.result.snapshot, o.result.request = s, profile, snapshot, asked
	}
	return o.result, o.err
}

// MayHelp reports whether an event may change the result of a request that these plugins have rejected, according to
// their hints. An event may always help plugins that are not in the profile any more.
func (s *Scheduler) MayHelp(request *Request, rejectedBy []string, event Event) bool {
	profile, err := s.profileOf(request)
	if err != nil {
		return true
	}
	return len(rejectedBy) == 0 || slices.ContainsFunc(rejectedBy, func(name string) bool {
		at := slices.IndexFunc(profile.plugins, func(p plugin) bool { return p.Name() == name })
		return at < 0 || profile.plugins[at].hint == nil || profile.plugins[at].hint.Hint(request, event)
	})
}

// PluginError is the error of a plugin that failed.
type PluginError struct {
	// Plugin is the name of the plugin, and Point the extension point at which it failed.
	Plugin, Point string
	// Cluster is the cluster for which the plugin was called. Empty: the call was for all clusters, or it did not return.
	Cluster string
	Err     error
}

func (e *PluginError) Error() string {
	if e.Cluster == "" {
		return fmt.Sprintf("plugin %s, %s: %v", e.Plugin, e.Point, e.Err)
	}
	return fmt.Sprintf("plugin %s, %s of cluster %s: %v", e.Plugin, e.Point, e.Cluster, e.Err)
}

func (e *PluginError) Unwrap() error { return e.Err }
