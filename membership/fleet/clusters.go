package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// ErrClusterNotFound is returned for a member without a live cluster: the member is unknown, not joined, not
// reachable, or has no kubeConfigSecretRef.
var ErrClusterNotFound = errors.New("no live cluster of that name exists")

// clusters are the live clusters of a fleet. The Runner creates and engages them one by one.
type clusters struct {
	options ProviderOptions
	engage  func(ctx context.Context, name string, live cluster.Cluster) error
	ctx     context.Context //nolint:containedctx // that of Start, with which all of them end

	shared *engaged
}

// engaged is the shared state of live clusters.
type engaged struct {
	mu      sync.Mutex
	by      map[string]cluster.Cluster
	indexes []index
}

// index is an index of all clusters.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func (i index) addTo(ctx context.Context, name string, live cluster.Cluster) error {
	if err := live.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract); err != nil {
		return fmt.Errorf("index %T by %s in cluster %s: %w", i.object, i.field, name, err)
	}
	return nil
}

// Name implements [Runner].
func (*clusters) Name() string { return "live cluster" }

// Run engages the live cluster of a member until its context ends.
func (c *clusters) Run(ctx context.Context, member Connected) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	name := member.Cluster.Name
	member.Config.QPS, member.Config.Burst = c.options.QPS, c.options.Burst
	live, err := cluster.New(member.Config, append([]cluster.Option{c.bounded}, c.options.ClusterOptions...)...)
	if err != nil {
		return fmt.Errorf("create a live cluster for member %s: %w", name, err)
	}
	applied, err := c.shared.index(ctx, name, live, 0)
	if err != nil {
		return err
	}
	var failure error
	ended := make(chan struct{})
	go func() {
		failure = live.Start(ctx)
		close(ended)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if err := c.sync(ctx, name, live); err != nil {
		return err
	}
	for !c.shared.add(name, live, applied) { // indexes were added meanwhile
		if applied, err = c.shared.index(ctx, name, live, applied); err != nil {
			return err
		}
	}
	defer c.shared.remove(name)
	if err := c.engage(ctx, name, live); err != nil {
		return fmt.Errorf("engage member %s: %w", name, err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the live cluster of member %s ended unexpectedly: %w", name, failure)
	}
}

// bounded sets a timeout for discovery requests of the cluster's mapper, which have no context and block all users of
// a kind.
func (c *clusters) bounded(o *cluster.Options) {
	o.MapperProvider = func(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
		patient := *httpClient
		patient.Timeout = c.options.SyncTimeout
		return apiutil.NewDynamicRESTMapper(config, &patient)
	}
}

// sync waits for the initial caches to sync, with a timeout.
func (c *clusters) sync(ctx context.Context, name string, live cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.SyncTimeout)
	defer cancel()
	if !live.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("the caches of member %s have not synced in %s: %w", name, c.options.SyncTimeout,
			context.Cause(ctx))
	}
	return nil
}

// index adds the indexes from the given position to a cluster and returns their number.
func (e *engaged) index(ctx context.Context, name string, live cluster.Cluster, from int) (int, error) {
	e.mu.Lock()
	indexes := e.indexes[from:]
	e.mu.Unlock()
	for _, index := range indexes {
		if err := index.addTo(ctx, name, live); err != nil {
			return from, err
		}
	}
	return from + len(indexes), nil
}

// add publishes a cluster if it has all indexes.
func (e *engaged) add(name string, live cluster.Cluster, applied int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if applied < len(e.indexes) {
		return false
	}
	e.by[name] = live
	return true
}

func (e *engaged) remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.by, name)
}

func (e *engaged) get(name string) (cluster.Cluster, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	live, there := e.by[name]
	return live, there
}

// indexAll adds an index to all clusters, including later ones. A cluster that does not respond does not delay others.
func (e *engaged) indexAll(ctx context.Context, i index) error {
	e.mu.Lock()
	e.indexes = append(e.indexes, i)
	now := maps.Clone(e.by)
	e.mu.Unlock()
	names := slices.Sorted(maps.Keys(now))
	problems := make([]error, len(names))
	var indexing sync.WaitGroup
	for at, name := range names {
		indexing.Go(func() { problems[at] = i.addTo(ctx, name, now[name]) })
	}
	indexing.Wait()
	return errors.Join(problems...)
}

const defaultSyncTimeout = time.Minute
