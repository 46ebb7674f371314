package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Defaults of [Options].
const (
	// DefaultConcurrency is the number of objects of a wave that are applied concurrently.
	DefaultConcurrency = 8
	// DefaultTimeout is the timeout of each request.
	DefaultTimeout = 10 * time.Second
	// DefaultEstablishTimeout is how long the engine waits until the API server serves a new kind.
	DefaultEstablishTimeout = 10 * time.Second
)

// Metadata provides the metadata of objects from a watch, without a request to the API server.
type Metadata interface {
	// Lookup returns the metadata of an object, with managed fields. It must not be changed. Nil: the metadata is unknown,
	// and the object may exist.
	Lookup(kind schema.GroupVersionKind, key client.ObjectKey) *metav1.PartialObjectMetadata
}

// Options are the options of an [Engine]. The zero value of each field is its documented default.
type Options struct {
	// Metadata saves requests. Nil: the engine requests the metadata of each object from the API server.
	Metadata Metadata
	// Concurrency is the number of objects of a wave that are applied concurrently. Default: [DefaultConcurrency].
	Concurrency int
	// Timeout is the timeout of each request. Default: [DefaultTimeout].
	Timeout time.Duration
	// EstablishTimeout is how long the engine waits until the API server serves a new kind. Default:
	// [DefaultEstablishTimeout].
	EstablishTimeout time.Duration
	// Clock is the source of time, for pauses between attempts. Default: the system clock.
	Clock clock.PassiveClock
}

// An Engine applies sets of objects. It may be used concurrently for different owners, but not for the same owner. Its
// cached state only saves requests.
type Engine struct {
	client  client.Client
	options Options

	mu     sync.Mutex
	memory map[types.UID]memories // by the ID of the owner
}

// New returns an engine that uses a client. The client must not read from a cache, and its RESTMapper must discover new
// kinds, as those of controller-runtime do.
func New(c client.Client, o Options) *Engine {
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.EstablishTimeout <= 0 {
		o.EstablishTimeout = DefaultEstablishTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Engine{client: c, options: o, memory: map[types.UID]memories{}}
}

// A Gate decides whether the next wave may be applied, given the changes of the previous one. If it returns a reason,
// no later wave is applied, and the objects of these waves have that reason.
type Gate func(ctx context.Context, wave []Change) (reason string)

// Apply applies the objects of a set, wave by wave, and returns a [Change] for each object. If an object fails, its
// Change has the error, and the other objects are still applied. Apply itself returns an error if nothing was applied:
// the set is invalid ([ErrInvalid]), or the inventory could not be recorded. If the context ends, a part of the set may
// have been applied; the recorded inventory contains that part.
//
// An unchanged object costs no write and, with [Options.Metadata], no request. An object that is only observed is read
// each time.
func (e *Engine) Apply(ctx context.Context, set Set, gate Gate) (ChangeSet, error) {
	plan, err := e.plan(ctx, set)
	if err != nil {
		return ChangeSet{}, err
	}
	ahead := Ahead(set.Inventory, plan.objects())
	if !slices.Equal(ahead, set.Inventory) {
		if err := set.Record(ctx, ahead); err != nil {
			return ChangeSet{}, fmt.Errorf("record the objects to apply: %w", err)
		}
	}
	e.retain(set.Owner, ahead, plan)
	changes := make([]Change, len(plan))
	blocked := ""
	for _, wave := range plan.waves() {
		if blocked != "" {
			for i := range wave {
				changes[wave[i].index] = wave[i].pending(blocked)
			}
			continue
		}
		e.applyWave(ctx, set.Owner, wave, changes)
		if err := ctx.Err(); err != nil {
			return ChangeSet{}, fmt.Errorf("apply wave %d: %w", wave[0].wave, err)
		}
		if gate != nil {
			blocked = gate(ctx, changesOf(wave, changes))
		}
	}
	return ChangeSet{Changes: changes, Inventory: inventory(ahead).after(changes).ran(plan, changes)}, nil
}

// applyWave applies the objects of a wave, and waits until the kinds that they define are served.
func (e *Engine) applyWave(ctx context.Context, owner Owner, wave []task, changes []Change) {
	e.resolveNewKinds(ctx, wave, changes)
	var unknown []*task
	for i := range wave {
		t := &wave[i]
		if t.err == nil && e.watchedMetadata(t) == nil &&
			!e.recall(owner, t).rejected.blocksReads(t.hash, e.options.Clock.Now()) {
			unknown = append(unknown, t)
		}
	}
	e.prefetch(ctx, owner, unknown)
	e.each(wave, func(t *task) { changes[t.index] = e.applyOne(ctx, owner, t) })
	e.awaitKinds(ctx, wave, changes)
}

// each calls a function for all objects of a wave, several at a time.
func (e *Engine) each(wave []task, work func(*task)) {
	var group errgroup.Group
	group.SetLimit(e.options.Concurrency)
	for i := range wave {
		group.Go(func() error {
			work(&wave[i])
			return nil
		})
	}
	_ = group.Wait()
}
