package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/sharedwatch"
)

const (
	// timeout is the timeout of a Find for a new kind, and of reads of objects.
	timeout = 5 * time.Second
	// pause is the interval between retries.
	pause = 15 * time.Second
)

var (
	errClosed = errors.New("the finder of configurations is stopped")
	errSlow   = fmt.Errorf("timeout after %s", timeout)
)

// Options are the options of a Finder. All fields except Log and Clock are required.
type Options struct {
	// Cache is the cache of the manager, which must be running. It watches the metadata of requested kinds from their
	// first request. A watch does not end when its last user is removed, because other controllers may use it.
	Cache cache.Cache
	// Live reads objects that are not cached: the manager's GetAPIReader.
	Live client.Reader
	// Mapper is the manager's RESTMapper.
	Mapper meta.RESTMapper
	// Log logs when a kind cannot be watched, and when it can again.
	Log logr.Logger
	// Changed is called when a Find of a user would return another result than the last one; once until the next Find. It
	// must not block. It can be called concurrently, and once after Forget.
	Changed func(user types.NamespacedName)
	// Clock is the source of time. Default: the system clock.
	Clock clock.Clock
}

// wants are the configurations that users reference.
type wants = sharedwatch.Registry[types.NamespacedName, v1alpha1.ConfigReference, *object]

// Finder reads configurations. Create it with [New]. Its methods are safe for concurrent use, except that Find and
// Forget must not be called concurrently for one user.
type Finder struct {
	options Options

	life context.Context // of all goroutines
	end  context.CancelFunc

	mu     sync.Mutex
	kinds  map[schema.GroupResource]*kind
	wants  wants
	closed bool
	ended  sync.WaitGroup
}

// Config is an existing configuration.
type Config struct {
	*unstructured.Unstructured
	// Hash is the hash of package config.
	Hash string
}

// Problem is the reason why the state of a configuration is unknown.
type Problem struct {
	v1alpha1.ConfigReference
	// Message names the configuration, the error and the next step.
	Message string
	// Retried is true if the error may be temporary. Other errors require a change by a user, and are also retried.
	Retried bool
}

// New returns a Finder. A watch starts with the first Find that needs it.
func New(o Options) (*Finder, error) {
	if o.Cache == nil || o.Live == nil || o.Mapper == nil || o.Changed == nil {
		return nil, errors.New("lookup.Options: Cache, Live, Mapper and Changed must be set")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := &Finder{options: o, kinds: map[schema.GroupResource]*kind{}}
	f.life, f.end = context.WithCancel(context.Background())
	return f, nil
}

// Start blocks until ctx ends, then stops and awaits all goroutines. After that Changed is not called, and Find fails.
// Start implements manager.Runnable.
func (f *Finder) Start(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	f.closed = true
	f.kinds, f.wants = map[schema.GroupResource]*kind{}, wants{}
	f.mu.Unlock()
	f.end()
	f.ended.Wait()
	return nil
}

// Find returns the configurations that exist, and registers the user for changes of them; earlier registrations of the
// user end. A configuration that is neither in the result nor in the problems does not exist.
//
// The objects are shared and must not be modified. Their content is current; their metadata and status may be outdated.
//
// Find blocks until ctx ends, at most five seconds for new kinds and five seconds for objects that were not read yet. A
// configuration that is unknown by then, forbidden, or of an unknown kind is a Problem, in the order of the references,
// and later calls do not block for it. An error means that ctx has ended or the Finder is stopped: there is no result,
// and no registration until the next Find.
func (f *Finder) Find(ctx context.Context, user types.NamespacedName,
	references []v1alpha1.ConfigReference) (map[v1alpha1.ConfigReference]*Config, []Problem, error) {
	wanted, err := f.want(user, references)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range wanted {
		f.await(ctx, o.kind)
	}
	reading, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
	defer cancel()
	for _, o := range wanted {
		o.look(reading)
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("find the configurations of %s: %w", user, err)
	}
	objects, problems := f.snapshot(user, wanted)
	return objects, problems, nil
}

// Forget removes the registration of a user, and all state without other users.
func (f *Finder) Forget(user types.NamespacedName) {
	_, _ = f.want(user, nil)
}

// want registers the references of a user. Changes are reported after the user has read the state.
func (f *Finder) want(user types.NamespacedName, references []v1alpha1.ConfigReference) ([]*object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	var unique []v1alpha1.ConfigReference
	for _, reference := range references {
		if !slices.Contains(unique, reference) {
			unique = append(unique, reference)
		}
	}
	f.wants.Want(user, unique, func(reference v1alpha1.ConfigReference) *object {
		return f.kindOf(reference).newObject(reference)
	})
	wanted := f.wants.Wanted(user)
	for _, o := range wanted {
		o.users[user] = false
	}
	return wanted, nil
}

// kindOf returns the kind of a reference and starts its watch. The lock must be held.
func (f *Finder) kindOf(reference v1alpha1.ConfigReference) *kind {
	resource := schema.GroupResource{Group: reference.Group, Resource: reference.Resource}
	k := f.kinds[resource]
	if k == nil {
		k = newKind(f, resource)
		f.kinds[resource] = k
		f.ended.Go(k.run)
	}
	return k
}

// await blocks until a kind is watched or cannot be watched.
func (f *Finder) await(ctx context.Context, k *kind) {
	sharedwatch.Deadline{Clock: f.options.Clock, Began: k.began, Timeout: timeout, Stopped: f.life.Done()}.
		Await(ctx, k.attempted)
}

// snapshot returns the state of the references of a user. Later changes are reported.
func (f *Finder) snapshot(user types.NamespacedName, wanted []*object) (map[v1alpha1.ConfigReference]*Config,
	[]Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	objects := make(map[v1alpha1.ConfigReference]*Config, len(wanted))
	var problems []Problem
	for _, o := range wanted {
		o.users.Read(user)
		if !o.known {
			o.stale = true // the timeout has passed: read it later
			o.nudge()
		}
		switch lookupError := o.unknownBecause(); {
		case !lookupError.none():
			problems = append(problems, lookupError.about(o.ConfigReference))
		case o.content != nil:
			objects[o.ConfigReference] = &Config{o.content, o.hash}
		}
	}
	return objects, problems
}

// notify calls Changed for users, without the lock.
func (f *Finder) notify(users []types.NamespacedName) {
	for _, user := range users {
		f.options.Changed(user)
	}
}
