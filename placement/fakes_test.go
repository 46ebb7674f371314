package placement_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
)

// source is a ClusterSource whose clusters tests change. It reports later changes to all fleets that it runs for.
type source struct {
	mu       sync.Mutex
	clusters map[string]*scheduler.Cluster
	fleets   map[placement.Fleet]bool
}

func newSource(clusters ...*scheduler.Cluster) *source {
	s := &source{clusters: map[string]*scheduler.Cluster{}, fleets: map[placement.Fleet]bool{}}
	s.set(clusters...)
	return s
}

func (s *source) Run(ctx context.Context, fleet placement.Fleet) error {
	s.mu.Lock()
	for _, c := range s.clusters {
		fleet.Set(c)
	}
	fleet.Synced()
	s.fleets[fleet] = true
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.fleets, fleet)
	s.mu.Unlock()
	return nil
}

func (s *source) set(clusters ...*scheduler.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range clusters {
		s.clusters[c.Name] = c
		for fleet := range s.fleets {
			fleet.Set(c)
		}
	}
}

func (s *source) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clusters, name)
	for fleet := range s.fleets {
		fleet.Remove(name)
	}
}

// cluster returns a healthy cluster that has joined. The functions in with modify it.
func cluster(name, region string, with ...func(*scheduler.Cluster)) *scheduler.Cluster {
	c := &scheduler.Cluster{Name: name, Labels: map[string]string{"region": region}, Joined: true, Healthy: true}
	for _, f := range with {
		f(c)
	}
	return c
}

func many(n int, region string) []*scheduler.Cluster {
	var clusters []*scheduler.Cluster
	for i := range n {
		clusters = append(clusters, cluster(fmt.Sprintf("%s-%03d", region, i), region))
	}
	return clusters
}

// countingDecider counts decisions by the name of the placement.
type countingDecider struct {
	placement.Decider
	mu        sync.Mutex
	decisions map[string]int
}

func newCounting(t testing.TB) *countingDecider {
	s, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(),
		Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
	require.NoError(t, err)
	return &countingDecider{Decider: s, decisions: map[string]int{}}
}

func (c *countingDecider) Schedule(ctx context.Context, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	c.mu.Lock()
	c.decisions[request.Name[strings.Index(request.Name, "/")+1:]]++
	c.mu.Unlock()
	return c.Decider.Schedule(ctx, snapshot, request)
}

// takeCounts returns the counts since its last call.
func (c *countingDecider) takeCounts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	decisions := c.decisions
	c.decisions = map[string]int{}
	return decisions
}

func (c *countingDecider) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, decisions := range c.decisions {
		n += decisions
	}
	return n
}

// transport counts the writes to the API server, except for those for leader election and events. It can make writes
// fail.
type transport struct {
	writes, all atomic.Int64
	fail        func(write int64, send func() (*http.Response, error)) (*http.Response, error)
}

func (w *transport) wrap(inner http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) { return w.roundTrip(inner, r) })
}

func (w *transport) roundTrip(inner http.RoundTripper, r *http.Request) (*http.Response, error) {
	send := func() (*http.Response, error) { return inner.RoundTrip(r) }
	w.all.Add(1)
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/leases") {
		return send()
	}
	n := w.writes.Add(1)
	if w.fail != nil {
		return w.fail(n, send)
	}
	return send()
}

// crashAfter makes all writes after the first k fail, as if the process had crashed. If executed is true, the API
// server executes the first of them nevertheless.
func crashAfter(k int64, executed bool) func(*setup) {
	return func(s *setup) {
		s.transport.fail = func(write int64, send func() (*http.Response, error)) (*http.Response, error) {
			if write <= k {
				return send()
			}
			if write == k+1 && executed {
				if response, err := send(); err == nil {
					_ = response.Body.Close()
				}
			}
			return nil, errors.New("crashed")
		}
	}
}

// cacheOver returns a constructor of a cache whose connection to the API server differs from that of the manager's
// clients.
func cacheOver(config *rest.Config) cache.NewCacheFunc {
	return func(_ *rest.Config, o cache.Options) (cache.Cache, error) {
		o.HTTPClient = nil
		return cache.New(config, o)
	}
}
