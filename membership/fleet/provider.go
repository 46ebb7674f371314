package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// An Engager is notified of live clusters; package multicluster of multicluster-runtime calls it Aware. The context
// ends when the cluster is disengaged. Engage must not block.
type Engager[Name ~string] interface {
	Engage(ctx context.Context, name Name, live cluster.Cluster) error
}

// ProviderOptions are the options of live clusters. The zero value of each field is its documented default.
type ProviderOptions struct {
	// QPS and Burst limit the requests to each cluster. Zero: the defaults of client-go. A negative QPS means no limit.
	QPS   float32
	Burst int
	// ClusterOptions configure each cluster: its scheme, cache and client. Default: those of controller-runtime. They
	// apply to all clusters, so they must not contain cluster-specific values such as a mapper.
	ClusterOptions []cluster.Option
	// SyncTimeout is the timeout for the initial caches, and for each discovery request. Default: one minute.
	SyncTimeout time.Duration
	// Tenancy restricts the provider to the members that the namespace Namespace may use, for controllers that act for
	// the users of a namespace. A member is disengaged when the permission ends. Nil: the provider engages every member.
	Tenancy Tenancy
	// Namespace is required with Tenancy, and must not be set without it.
	Namespace string
	// NotFound is an additional error that Get wraps besides ErrClusterNotFound, such as multicluster.ErrClusterNotFound.
	// Optional.
	NotFound error
}

// Tenancy decides which members a namespace may use. *Grants of package tenancy implements it. Its methods may be
// called concurrently.
type Tenancy interface {
	// Watch calls changed with each namespace whose rules may have changed, until the caller calls end. It returns after
	// all existing rules were observed.
	Watch(ctx context.Context, changed func(namespace string)) (end func(), err error)
	// MayPlace reports whether a namespace may use a member with these labels.
	MayPlace(namespace string, labels map[string]string) bool
}

// Provider provides a live cluster for each member that has joined and that the hub can reach, in push and pull mode:
// its client, cache and mapper. A cluster is engaged when the member has joined and was reached, and disengaged when
// the member leaves, is deleted, or has no Secret. It stays engaged when credentials change or the connection is
// interrupted. It caches only requested kinds.
//
// A provider for multicluster-runtime is
//
//	fleet.NewProvider[multicluster.ClusterName, multicluster.Aware](f, fleet.ProviderOptions{NotFound: multicluster.ErrClusterNotFound})
//
// and, for versions whose names are strings, the same with string instead of ClusterName. It implements Provider and
// ProviderRunnable of that package. Its methods are safe for concurrent use.
type Provider[Name ~string, Aware Engager[Name]] struct {
	fleet   *Fleet
	options ProviderOptions
	shared  *engaged
}

// NewProvider returns a provider of the clusters of a fleet. Only one can be started at a time. It opens no
// connections before its start.
func NewProvider[Name ~string, Aware Engager[Name]](f *Fleet, options ProviderOptions) *Provider[Name, Aware] {
	if options.SyncTimeout <= 0 {
		options.SyncTimeout = defaultSyncTimeout
	}
	return &Provider[Name, Aware]{fleet: f, options: options, shared: &engaged{by: map[string]cluster.Cluster{}}}
}

// Get returns the live cluster of a member. It does not block. The error is [ErrClusterNotFound] if there is none.
func (p *Provider[Name, Aware]) Get(_ context.Context, name Name) (cluster.Cluster, error) {
	if live, there := p.shared.get(string(name)); there {
		return live, nil
	}
	if p.options.NotFound != nil {
		return nil, fmt.Errorf("member %s: %w (%w)", name, ErrClusterNotFound, p.options.NotFound)
	}
	return nil, fmt.Errorf("member %s: %w", name, ErrClusterNotFound)
}

// IndexField adds an index to the caches of all clusters, including later ones. The returned error joins the errors of
// existing clusters.
func (p *Provider[Name, Aware]) IndexField(ctx context.Context, object client.Object, field string,
	extract client.IndexerFunc) error {
	return p.shared.indexAll(ctx, index{object, field, extract})
}

// Start engages clusters until the context ends, while the manager of the fleet runs, with or without leadership. At
// the end all clusters are disengaged.
func (p *Provider[Name, Aware]) Start(ctx context.Context, aware Aware) error {
	if (p.options.Tenancy == nil) != (p.options.Namespace == "") {
		return errors.New(
			"start a provider of live clusters: fleet.ProviderOptions: Tenancy and Namespace require each other")
	}
	permits := func(map[string]string) bool { return true }
	if tenancy := p.options.Tenancy; tenancy != nil {
		end, err := tenancy.Watch(ctx, func(namespace string) {
			if namespace == p.options.Namespace {
				p.fleet.change(func(*duties) {})
			}
		})
		if err != nil {
			return fmt.Errorf("start a provider of live clusters: %w", err)
		}
		defer end()
		permits = func(labels map[string]string) bool { return tenancy.MayPlace(p.options.Namespace, labels) }
	}
	engine := &clusters{options: p.options, ctx: ctx, shared: p.shared,
		engage: func(ctx context.Context, name string, live cluster.Cluster) error {
			return aware.Engage(ctx, Name(name), live)
		}}
	var already bool
	p.fleet.change(func(d *duties) {
		if already = d.live.runner != nil; !already {
			d.live = liveClusters{engine, permits}
		}
	})
	if already {
		return errors.New("start a provider of live clusters: another provider of the fleet is started already")
	}
	<-ctx.Done()
	p.fleet.change(func(d *duties) { d.live = liveClusters{} })
	return nil
}
