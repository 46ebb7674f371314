package selection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-sdk/muster/internal/sharedwatch"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Reasons of a [Problem].
const (
	ReasonInvalid     = "Invalid"     // the selector is invalid
	ReasonOutOfBounds = "OutOfBounds" // Options.Allow does not allow the target
	ReasonUnknownKind = "UnknownKind" // the hub does not serve the kind
	ReasonForbidden   = "Forbidden"   // the hub's controller may not list or watch the target
	ReasonNotSynced   = "NotSynced"   // the target was not listed yet
	ReasonStale       = "Stale"       // the target was listed, but changes could not be observed for more than a minute
	ReasonNotFound    = "NotFound"    // the named object does not exist
	ReasonRefused     = "Refused"     // an object cannot be distributed
)

// Options are the options of a Watcher.
type Options struct {
	// Config is the configuration of the hub's client. Its rate limits apply. A new watch takes one to three requests.
	Config *rest.Config
	// HTTPClient sends the requests. Nil: created from Config.
	HTTPClient *http.Client
	// Mapper maps the kinds of the hub. It may be outdated: a kind that it does not know, or that no longer exists, is
	// discovered without it. Nil: created from Config.
	Mapper meta.RESTMapper
	// Log reports when a watch fails and when it recovers.
	Log logr.Logger
	// Changed is called when the selection of an owner may have changed since the last Select. It must return immediately.
	// It may be called concurrently, and once more after Forget.
	Changed func(owner types.NamespacedName)
	// Allow returns an error if an owner may not select a target; its text is the message of a Problem. Each Select calls
	// it before anything is read. It may be called concurrently. Nil: [OwnNamespace].
	Allow func(owner types.NamespacedName, target Target) error
	// Clock provides the time. Nil: the system's clock.
	Clock clock.Clock
}

type (
	kindRegistry  = sharedwatch.Registry[types.NamespacedName, schema.GroupVersionKind, *kind]
	watchRegistry = sharedwatch.Registry[types.NamespacedName, Target, *watch]
)

// Watcher watches the objects that owners select. Create it with [New]. Its methods are safe for concurrent use, except
// that Select and Forget must not be called concurrently for the same owner.
type Watcher struct {
	options   Options
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface

	life context.Context // the context of all goroutines
	end  context.CancelFunc

	mu       sync.Mutex
	kinds    kindRegistry
	watches  watchRegistry
	every    *everyKind // nil: no selector of every kind exists
	retrying bool       // whether a goroutine looks up missing kinds
	closed   bool
	ended    sync.WaitGroup
}

// Selected is the selection of an owner.
type Selected struct {
	// Objects are sorted by group, kind, namespace and name. Their text is shared, and must not be changed.
	Objects []bundle.Object
	// Problems are sorted by selector. If there is any, Objects may be incomplete, and no object may be removed because it
	// is missing from Objects.
	Problems []Problem
}

// Problem is the reason why a selector does not select what it describes.
type Problem struct {
	// Selector is the index of the selector.
	Selector int
	// Reason is one of the Reason constants.
	Reason string
	// Message is a clause that contains the cause and the remedy.
	Message string
}

// New returns a Watcher. A watch begins with the first Select that needs it, also before [Watcher.Start]. All watches
// have ended when Start returns.
func New(o Options) (*Watcher, error) {
	if o.Config == nil || o.Changed == nil {
		return nil, errors.New("selection.Options: Config and Changed must be set")
	}
	if o.HTTPClient == nil {
		var err error
		if o.HTTPClient, err = rest.HTTPClientFor(o.Config); err != nil {
			return nil, fmt.Errorf("make a client of the hub: %w", err)
		}
	}
	client, err := dynamic.NewForConfigAndClient(o.Config, o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("make a client of the hub: %w", err)
	}
	discovering := *o.HTTPClient
	discovering.Timeout = discoveryTimeout // a mapper has no context
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(o.Config, &discovering)
	if err != nil {
		return nil, fmt.Errorf("make a client of the hub: %w", err)
	}
	if o.Mapper == nil {
		if o.Mapper, err = apiutil.NewDynamicRESTMapper(o.Config, &discovering); err != nil {
			return nil, fmt.Errorf("make a mapper of the hub's kinds: %w", err)
		}
	}
	if o.Allow == nil {
		o.Allow = OwnNamespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	w := &Watcher{options: o, client: client, discovery: kinds}
	w.life, w.end = context.WithCancel(context.Background())
	return w, nil
}

// Start blocks until ctx ends, then stops all watches and waits for them. After that Changed is not called. Start
// implements manager.Runnable.
func (w *Watcher) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	w.closed = true
	w.kinds, w.watches = kindRegistry{}, watchRegistry{}
	w.mu.Unlock()
	w.end()
	w.ended.Wait()
	return nil
}

// Select replaces the selectors of an owner, and returns the objects that they select. It waits for the first list of
// new targets until ctx ends, at most five seconds for the kinds and five seconds for the lists. A target that is
// missing, forbidden or slow is a Problem. Later calls do not wait for it: Changed is called when the problem ends.
func (w *Watcher) Select(ctx context.Context, owner types.NamespacedName,
	selectors []v1alpha1.ResourceSelector) Selected {
	parsed := w.expand(owner, selectors, func(done <-chan struct{}, began time.Time) { w.await(ctx, done, began) })
	for _, k := range w.wantKinds(owner, parsed) {
		w.await(ctx, k.done, k.began)
	}
	w.setTargets(owner, parsed)
	for _, t := range w.wantWatches(owner, parsed) {
		w.await(ctx, t.done, t.began)
	}
	return w.snapshot(owner, parsed)
}

// Forget removes the selectors of an owner. Watches that no owner needs any more end.
func (w *Watcher) Forget(owner types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches.Want(owner, nil, nil)
	w.kinds.Want(owner, nil, nil)
	if w.every != nil {
		delete(w.every.users, owner)
	}
}

// timeout is how long Select waits for a kind, and for the first list of its objects.
const timeout = 5 * time.Second

func (w *Watcher) await(ctx context.Context, done <-chan struct{}, began time.Time) {
	sharedwatch.Deadline{Clock: w.options.Clock, Began: began, Timeout: timeout, Stopped: w.life.Done()}.Await(ctx, done)
}

// setTargets sets the target of each selector, and checks whether the owner may select it.
func (w *Watcher) setTargets(owner types.NamespacedName, parsed []parsedSelector) {
	for i := range parsed {
		a := &parsed[i]
		if a.problem.none() {
			a.setTarget(w.mapping(a.kind))
		}
		if !a.problem.none() {
			continue
		}
		if err := w.options.Allow(owner, a.target); err != nil {
			a.problem = problem{ReasonOutOfBounds, err.Error()}
		}
	}
}

// change calls f under the lock. If f reports a change, the users that have read the former state are notified.
func (w *Watcher) change(u users, f func() bool) {
	w.mu.Lock()
	var owners []types.NamespacedName
	if f() {
		owners = u.Readers()
	}
	w.mu.Unlock()
	for _, owner := range owners {
		w.options.Changed(owner)
	}
}
