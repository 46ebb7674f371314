package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// An Engager is told of live clusters: what package multicluster of multicluster-runtime calls Aware. Its context ends when the cluster
// is there no more. It must not block.
type Engager[Name ~string] interface {
	Engage(ctx context.Context, name Name, live cluster.Cluster) error
}

// ProviderOptions say how live clusters are to be. The zero value works.
type ProviderOptions struct {
	// QPS and Burst limit requests to each cluster by itself. Zero: those of client-go; a negative QPS is no limit.
	QPS   float32
	Burst int
	// ClusterOptions are those of each cluster: its scheme, and what its cache and its client are to be like. Nil: those of
	// controller-runtime. They are for all clusters, so they must not hold what is for one, such as a mapper.
	ClusterOptions []cluster.Option
	// SyncTimeout bounds the wait for caches that a cluster has from the beginning, which it does by indexes, and for each answer about the
	// kinds that it has. Zero: a minute.
	SyncTimeout time.Duration
	// NotFound is what Get's error is besides ErrClusterNotFound, such as multicluster.ErrClusterNotFound. Nil: nothing.
	NotFound error
}

// Provider has a live cluster for each member that has joined and that the hub reaches, in push and pull mode alike: its client, cache and mapper. A cluster is
// engaged when the member is joined and was reached, and disengaged when it leaves, is gone, or has no Secret any more. It outlives new
// credentials and times without an answer; its caches are those that somebody asked for.
//
// A provider for multicluster-runtime is
//
//	fleet.NewProvider[multicluster.ClusterName, multicluster.Aware](f, fleet.ProviderOptions{NotFound: multicluster.ErrClusterNotFound})
//
// and, for versions whose names are strings, one of string instead of ClusterName; it implements Provider and ProviderRunnable of that package.
// Its methods may be called concurrently.
type Provider[Name ~string, Aware Engager[Name]] struct {
	fleet   *Fleet
	options ProviderOptions
	shared  *engaged
}

// NewProvider returns a provider of the clusters of a fleet, which can have one that is started at a time. Nothing is connected or cached for its
// sake before that.
func NewProvider[Name ~string, Aware Engager[Name]](f *Fleet, options ProviderOptions) *Provider[Name, Aware] {
	if options.SyncTimeout <= 0 {
		options.SyncTimeout = defaultSyncTimeout
	}
	return &Provider[Name, Aware]{fleet: f, options: options, shared: &engaged{by: map[string]cluster.Cluster{}}}
}

// Get returns the live cluster of a member. It does not wait. Its error is [ErrClusterNotFound] where there is none.
func (p *Provider[Name, Aware]) Get(_ context.Context, name Name) (cluster.Cluster, error) {
	if live, there := p.shared.get(string(name)); there {
		return live, nil
	}
	if p.options.NotFound != nil {
		return nil, fmt.Errorf("member %s: %w (%w)", name, ErrClusterNotFound, p.options.NotFound)
	}
	return nil, fmt.Errorf("member %s: %w", name, ErrClusterNotFound)
}

// IndexField has the caches of all clusters have an index, those to come included. The error joins those of the clusters that there are.
func (p *Provider[Name, Aware]) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return p.shared.indexAll(ctx, index{object, field, extract})
}

// Start engages clusters until the context ends, while the manager of the fleet runs, whether that leads or not. With its end all clusters are
// disengaged.
func (p *Provider[Name, Aware]) Start(ctx context.Context, aware Aware) error {
	engine := &clusters{options: p.options, ctx: ctx, shared: p.shared, engage: func(ctx context.Context, name string, live cluster.Cluster) error {
		return aware.Engage(ctx, Name(name), live)
	}}
	var already bool
	p.fleet.change(func() {
		if already = p.fleet.clusters != nil; !already {
			p.fleet.clusters = engine
		}
	})
	if already {
		return errors.New("start a provider of live clusters: the fleet has one that is started")
	}
	<-ctx.Done()
	p.fleet.change(func() { p.fleet.clusters = nil })
	return nil
}
