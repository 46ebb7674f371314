package lookup

import (
	"context"
	"errors"
	"fmt"
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
)

const (
	// patience is how long a Find waits for a kind, since it was first asked for, and how long for objects.
	patience = 5 * time.Second
	// pause is the time between two tries of what failed.
	pause = 15 * time.Second
)

var (
	errClosed = errors.New("the finder of configurations has ended")
	errSlow   = fmt.Errorf("it took longer than %s", patience)
)

// Options of a Finder. All but Log and Clock must be set.
type Options struct {
	// Cache is the manager's, which must run. Kinds that are asked for are watched by it from then on, by their metadata alone. They stay in
	// it when nobody asks for them any more, since others may have come to use them.
	Cache cache.Cache
	// Live reads what the cache does not have: the manager's GetAPIReader.
	Live client.Reader
	// Mapper knows the hub's kinds: the manager's.
	Mapper meta.RESTMapper
	// Log says when a kind cannot be watched, and when it can again.
	Log logr.Logger
	// Changed is called when a Find would return something else to a user than the last one did; once, until the user has called it again. It
	// must return at once. It may be called concurrently, and once more after Forget.
	Changed func(user types.NamespacedName)
	// Clock tells the time. Nil: the system's.
	Clock clock.Clock
}

// Finder finds configurations. Make it by [New]. Its methods may be called concurrently, but Find and Forget for one user only after
// one another.
type Finder struct {
	options Options

	life context.Context // of all that runs
	end  context.CancelFunc

	mu     sync.Mutex
	kinds  map[schema.GroupResource]*kind
	wants  map[types.NamespacedName][]*object
	closed bool
	ended  sync.WaitGroup
}

// Config is a configuration that is there.
type Config struct {
	*unstructured.Unstructured
	// Hash is that of package config.
	Hash string
}

// Problem is why nobody knows whether a configuration is there.
type Problem struct {
	v1alpha1.ConfigReference
	// Message is a sentence that names the configuration and says what is the matter and what to do.
	Message string
	// Retried problems may pass by themselves. The others want somebody to do something, and end by themselves when that is done.
	Retried bool
}

// New makes a Finder. A watch begins with the first Find that needs it.
func New(o Options) (*Finder, error) {
	if o.Cache == nil || o.Live == nil || o.Mapper == nil || o.Changed == nil {
		return nil, errors.New("lookup.Options: Cache, Live, Mapper and Changed must be set")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := &Finder{options: o, kinds: map[schema.GroupResource]*kind{}, wants: map[types.NamespacedName][]*object{}}
	f.life, f.end = context.WithCancel(context.Background())
	return f, nil
}

// Start waits until ctx ends, then ends all that runs and waits for it. After that nobody is told of anything, and Find fails. It is a
// manager.Runnable.
func (f *Finder) Start(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	f.closed = true
	f.kinds, f.wants = map[schema.GroupResource]*kind{}, map[types.NamespacedName][]*object{}
	f.mu.Unlock()
	f.end()
	f.ended.Wait()
	return nil
}

// Find returns those of the configurations that are there, and from now on tells the user when that changes; what it asked for before and
// does not any more it is not told of. A configuration that is neither among the objects nor among the problems is missing.
//
// The objects are shared, and must not be changed. Their content is as it is now; their metadata and status may be those of a while ago.
//
// It waits for ctx, for five seconds at most for kinds that nobody has asked for before, and for as long for objects that nobody has
// read yet. What is not known by then, is forbidden or does not exist as a kind is a Problem, in the order of the references, and is not waited
// for again. The error is that of ctx, or that the Finder has ended: then nothing is known, and the user is told of nothing until the next Find.
func (f *Finder) Find(ctx context.Context, user types.NamespacedName, references []v1alpha1.ConfigReference) (map[v1alpha1.ConfigReference]*Config, []Problem, error) {
	wanted, err := f.want(user, references)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range wanted {
		f.await(ctx, o.kind)
	}
	reading, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
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

// Forget ends what a user asked for, and frees what nobody else does.
func (f *Finder) Forget(user types.NamespacedName) {
	_, _ = f.want(user, nil)
}

// want has a user want these and no others. It is told of none of them until it has seen what they are.
func (f *Finder) want(user types.NamespacedName, references []v1alpha1.ConfigReference) ([]*object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	var wanted []*object
	asked := make(map[v1alpha1.ConfigReference]bool, len(references))
	for _, reference := range references {
		if asked[reference] {
			continue
		}
		asked[reference] = true
		o := f.kindOf(reference).object(reference)
		o.users[user] = false
		wanted = append(wanted, o)
	}
	for _, o := range f.wants[user] {
		if !asked[o.ConfigReference] {
			o.release(user)
		}
	}
	if f.wants[user] = wanted; len(wanted) == 0 {
		delete(f.wants, user)
	}
	return wanted, nil
}

// kindOf is the kind of a reference, which begins to be watched. The lock is held.
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

// await waits until a kind is watched, or cannot be.
func (f *Finder) await(ctx context.Context, k *kind) {
	left := patience - f.options.Clock.Since(k.began)
	if left <= 0 {
		return
	}
	timer := f.options.Clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-k.settled:
	case <-timer.C():
	case <-ctx.Done():
	case <-f.life.Done():
	}
}

// snapshot is what is known of what a user wants. From now on it is told of changes.
func (f *Finder) snapshot(user types.NamespacedName, wanted []*object) (map[v1alpha1.ConfigReference]*Config, []Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	objects := make(map[v1alpha1.ConfigReference]*Config, len(wanted))
	var problems []Problem
	for _, o := range wanted {
		if _, still := o.users[user]; still {
			o.users[user] = true
		}
		if !o.known {
			o.stale = true // no time was left: it is read when there is
			o.nudge()
		}
		switch trouble := o.matter(); {
		case !trouble.none():
			problems = append(problems, trouble.about(o.ConfigReference))
		case o.content != nil:
			objects[o.ConfigReference] = &Config{o.content, o.hash}
		}
	}
	return objects, problems
}

// tell calls users, without the lock.
func (f *Finder) tell(users []types.NamespacedName) {
	for _, user := range users {
		f.options.Changed(user)
	}
}
