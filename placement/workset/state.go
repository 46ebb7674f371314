package workset

import (
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// state is what is remembered of one WorkSet. All of it can be found out again, so that a restart loses nothing.
type state struct {
	key types.NamespacedName

	// writing is held for reading by those who write Works, and for writing by who ends the WorkSet.
	writing sync.RWMutex

	mu       sync.Mutex
	wants    map[string]*want   // by cluster
	troubles map[string]trouble // by cluster, where there is any
	follows  map[string]bool    // the clusters whose changes matter
	thinking time.Duration      // how long the last look took to decide

	// The following fields belong to the reconcile of the WorkSet. The workqueue never processes a key concurrently.

	uid        types.UID
	spec       spec
	latest     *v1alpha1.WorkSet // as it was when it was last written, until the cache has that too
	written    time.Time         // when its status was
	history    []revision.Info
	read       bool // whether the history is
	readings   map[string]*reading
	unreadable map[string]string // why a revision cannot be read and never can
	told       map[string]told
	groups     map[string]rollout.Group
	health     map[string]healthSince
	looks      map[string]looked
	shares     shares
	estimating estimating
	missed     missed
	ending     time.Time // since when its deletion has been observed to be a request
}

func newState(key types.NamespacedName) *state {
	s := &state{key: key}
	s.reset("")
	return s
}

// reset forgets all that is remembered of a WorkSet that had the same name.
func (s *state) reset(uid types.UID) {
	s.mu.Lock()
	s.wants, s.troubles, s.follows = map[string]*want{}, map[string]trouble{}, map[string]bool{}
	s.mu.Unlock()
	s.uid, s.spec, s.latest, s.written, s.history, s.read = uid, spec{}, nil, time.Time{}, nil, false
	s.readings, s.unreadable = map[string]*reading{}, map[string]string{}
	s.told, s.groups, s.health = map[string]told{}, map[string]rollout.Group{}, map[string]healthSince{}
	s.looks, s.shares = map[string]looked{}, shares{}
	s.missed, s.ending = missed{}, time.Time{}
}

// thought takes down how long it took to decide.
func (s *state) thought(took time.Duration) {
	s.mu.Lock()
	s.thinking = min(took, maxThinking)
	s.mu.Unlock()
}

// maxThinking is how long a look is taken to decide at most: what takes longer has waited for something.
const maxThinking = 100 * time.Millisecond

// spec is what was read of a spec.
type spec struct {
	generation int64
	manifests  []bundle.Object
	err        error
}

// read reads a spec, once.
func (s *spec) read(set *v1alpha1.WorkSet) error {
	if s.generation == set.Generation {
		return s.err
	}
	*s = spec{generation: set.Generation}
	if errs := set.Spec.Validate(); len(errs) > 0 {
		s.err = errs.ToAggregate()
		return s.err
	}
	for i := range set.Spec.Manifests {
		o, err := bundle.Parse(set.Spec.Manifests[i].Raw)
		if err != nil {
			s.err = fmt.Errorf("spec.manifests[%d]: %w", i, err)
			return s.err
		}
		s.manifests = append(s.manifests, o)
	}
	return nil
}

// reading is a revision that was read: what is to be done with it for each cluster.
type reading struct {
	content  *revision.Content
	plan     *override.Plan
	division *division.Division // nil: replicas are not divided
	options  bundle.Hash        // of the Works
}

// want is what a cluster is to have, for those who write it.
type want struct {
	namespace string
	cluster   *scheduler.Cluster
	reading   *reading // nil: nothing any more
	objects   []bundle.Object
	divided   bool // objects are set, since they depend on the other clusters
	told      told
	parting   parting     // of what it is to have no longer
	by        types.UID   // of the WorkSet
	created   metav1.Time // of the WorkSet
	until     time.Time   // what is nothing any more may be acted on until then: see confirmedFor
}

// render says what the cluster is to have.
func (w *want) render() (*wanted, error) {
	if w.reading == nil {
		return &wanted{}, nil
	}
	objects := w.objects
	if !w.divided {
		result, err := w.reading.plan.For(w.cluster)
		if err != nil {
			return nil, err
		}
		objects = result.Objects
	}
	return &wanted{bundle.Wanted{Objects: objects, Options: w.reading.options}, w.told, owner{w.by, w.created}}, nil
}

// looked is what was found of a cluster, and what that depends on.
type looked struct {
	by        types.UID // of the WorkSet
	told      told
	reading   *reading
	cluster   *scheduler.Cluster
	namespace string
	objects   bundle.Hash // of what was divided for it
	version   uint64

	verdict
}

func (l looked) sameAs(o looked) bool {
	l.verdict, o.verdict = verdict{}, verdict{}
	return l == o
}

// verdict says whether a cluster's Works are as they are to be.
type verdict struct {
	current bool
	waits   string  // what they wait for; empty: for nothing, or nothing to tell of
	problem problem // why they cannot be; none: they can
}

// problem is what keeps a cluster from being told. The reason is one of those of a WorkSet's conditions.
type problem struct{ reason, message string }

// forget drops what is remembered of clusters that do not matter any more.
func (s *state) forget(stays func(cluster string) bool) {
	forget(s.told, stays)
	forget(s.groups, stays)
	forget(s.health, stays)
	forget(s.looks, stays)
}

func forget[V any](of map[string]V, stays func(cluster string) bool) {
	maps.DeleteFunc(of, func(cluster string, _ V) bool { return !stays(cluster) })
}

// healthSince is how a cluster has fared since when, by our clock.
type healthSince struct {
	revision string
	health   rollout.Health
	since    time.Time
}

// since returns since when a cluster has its health. After a restart it is the time that the member reports, but no
// later than now and no earlier than the update: clocks of members may be wrong.
func since(before healthSince, is healthSince, changed time.Time, told told) healthSince {
	if before.revision == is.revision && settledIn(before.health, is.health) {
		is.since = before.since
		return is
	}
	if before.revision == "" && !changed.IsZero() {
		if changed.After(is.since) {
			return is
		}
		is.since = changed
		if changed.Before(told.since) {
			is.since = told.since
		}
	}
	return is
}

// settledIn reports whether one health goes on in another: to be under way and not to be known both last until it is well or not.
func settledIn(before, is rollout.Health) bool {
	open := func(h rollout.Health) bool { return h != rollout.Succeeded && h != rollout.Failed }
	return before == is || open(before) && open(is)
}
