package workset

import (
	"fmt"
	"maps"
	"slices"
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
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// state is the state of one WorkSet between reconciles. All of it can be rebuilt from the API, so a restart loses
// nothing.
type state struct {
	key types.NamespacedName

	// writing is locked for reading by writers of Works, and for writing by the deletion of the WorkSet.
	writing sync.RWMutex
	shared  sharedState

	// The following fields belong to the reconcile of the WorkSet. The workqueue never processes a key concurrently.

	uid       types.UID
	spec      spec
	latest    *v1alpha1.WorkSet // after the last write, until the cache contains it
	written   time.Time         // when the status was written
	revisions knownRevisions
	clusters  clusterStates
	division  divisionState
	missed    cacheMisses
	ending    time.Time // since when the deletion is observed to be a request
}

// sharedState is the part of a state that event handlers and the writers of Works share with the reconcile.
type sharedState struct {
	mu           sync.Mutex
	wants        map[string]*want      // by cluster
	writeErrors  map[string]writeError // by cluster
	follows      map[string]bool       // clusters whose changes cause a reconcile
	decisionTime time.Duration         // how long the last reconcile took to decide
}

// knownRevisions contains the revisions of a WorkSet.
type knownRevisions struct {
	history    []revision.Info
	read       bool // the history was read
	readings   map[string]*reading
	unreadable map[string]string // by permanently unreadable revision: the reason
}

// remove removes a revision from the history.
func (r *knownRevisions) remove(name string) {
	r.history = slices.DeleteFunc(r.history, func(of revision.Info) bool { return of.Name == name })
}

// clusterStates contains the states of the clusters of a WorkSet, by cluster.
type clusterStates struct {
	assigned    map[string]assignment
	groups      map[string]rollout.Group
	bindings    map[string]string // the ClusterSetBindings that granted the clusters
	health      map[string]healthSince
	evaluations map[string]cachedEvaluation
}

// divisionState is the state of the division of replicas among the clusters.
type divisionState struct {
	shares     shares
	estimating estimatorCall
}

func newState(key types.NamespacedName) *state {
	s := &state{key: key}
	s.reset("")
	return s
}

// reset removes the state of a former WorkSet with the same name.
func (s *state) reset(uid types.UID) {
	s.shared.mu.Lock()
	s.shared.wants, s.shared.writeErrors = map[string]*want{}, map[string]writeError{}
	s.shared.follows = map[string]bool{}
	s.shared.mu.Unlock()
	s.uid, s.spec, s.latest, s.written = uid, spec{}, nil, time.Time{}
	s.revisions = knownRevisions{readings: map[string]*reading{}, unreadable: map[string]string{}}
	s.clusters = clusterStates{assigned: map[string]assignment{}, groups: map[string]rollout.Group{},
		bindings: map[string]string{}, health: map[string]healthSince{}, evaluations: map[string]cachedEvaluation{}}
	s.division.shares = shares{}
	s.missed, s.ending = cacheMisses{}, time.Time{}
}

// recordDecisionTime records how long a reconcile took to decide.
func (s *state) recordDecisionTime(took time.Duration) {
	s.shared.mu.Lock()
	s.shared.decisionTime = min(took, maxDecisionTime)
	s.shared.mu.Unlock()
}

// maxDecisionTime is the maximum recorded duration. A reconcile that takes longer was blocked.
const maxDecisionTime = 100 * time.Millisecond

// spec is the parsed spec of a WorkSet.
type spec struct {
	generation int64
	manifests  []bundle.Object
	err        error
}

// read parses a spec once for each generation.
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

// reading is a parsed revision.
type reading struct {
	content  *revision.Content
	plan     *override.Plan
	division *division.Division // nil: replicas are not divided
	options  bundle.Hash        // of the Works
}

// want is the input for the writers of a cluster's Works.
type want struct {
	namespace    string
	cluster      *scheduler.Cluster
	limit        limit
	reading      *reading // nil: no Works
	objects      []bundle.Object
	divided      bool // whether objects is set, because the division depends on other clusters
	assigned     assignment
	placements   string       // the annotation of the first Work; empty: the existing one stays
	deletePolicy deletePolicy // of Works to delete
	by           types.UID    // UID of the WorkSet
	created      metav1.Time  // creation time of the WorkSet
	until        time.Time    // time until which Works may be deleted, see confirmedFor
}

// spec returns the spec of a Work.
func (w *want) spec(manifests []workv1alpha1.Manifest) *workv1alpha1.WorkSpec {
	spec := workSpec(&w.reading.content.Work, manifests)
	spec.Executor = w.limit.executor(&w.reading.content.Work)
	return spec
}

// render returns the desired Works.
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
	if err := w.limit.check(&w.reading.content.Work, objects); err != nil {
		return nil, err
	}
	options := w.reading.options
	if w.limit.executor(&w.reading.content.Work) != w.reading.content.Work.Executor {
		options = bundle.HashOptions(w.spec(nil))
	}
	return &wanted{
		bundle.Wanted{Objects: objects, Options: options}, w.assigned, owner{w.by, w.created}, w.placements,
	}, nil
}

// cachedEvaluation is the evaluation of a cluster with its inputs.
type cachedEvaluation struct {
	by         types.UID // of the WorkSet
	assigned   assignment
	placements string
	reading    *reading
	cluster    *scheduler.Cluster
	namespace  string
	limit      limit
	objects    bundle.Hash // of the divided objects
	version    uint64

	evaluation
}

func (l cachedEvaluation) sameAs(o cachedEvaluation) bool {
	l.evaluation, o.evaluation = evaluation{}, evaluation{}
	return l == o
}

// evaluation is the result of comparing the Works of a cluster with the desired ones.
type evaluation struct {
	current bool
	refused bool    // the rules of the namespace do not allow the Works; waits contains the reason
	waits   string  // the state that the Works wait for; empty: nothing to report
	problem problem // the reason why the Works cannot match; zero: none
}

// problem is the reason why a cluster cannot be updated. Its field reason is a reason of the conditions of a WorkSet.
type problem struct{ reason, message string }

// drop removes the state of clusters that the WorkSet has no longer.
func (c *clusterStates) drop(stays func(cluster string) bool) {
	forget(c.assigned, stays)
	forget(c.groups, stays)
	forget(c.bindings, stays)
	forget(c.health, stays)
	forget(c.evaluations, stays)
}

func forget[V any](of map[string]V, stays func(cluster string) bool) {
	maps.DeleteFunc(of, func(cluster string, _ V) bool { return !stays(cluster) })
}

// healthSince is the health of a cluster, and the time since which it has that health, by the hub's clock.
type healthSince struct {
	revision string
	health   rollout.Health
	since    time.Time
}

// since returns the health with the time since which the cluster has it. After a restart, it uses the time that the
// member reports, but no time after now and none before the update, because clocks of members may be wrong.
func since(before healthSince, is healthSince, changed time.Time, given assignment) healthSince {
	if before.revision == is.revision && continues(before.health, is.health) {
		is.since = before.since
		return is
	}
	if before.revision == "" && !changed.IsZero() {
		if changed.After(is.since) {
			return is
		}
		is.since = changed
		if changed.Before(given.since) {
			is.since = given.since
		}
	}
	return is
}

// continues reports whether the period of one health continues with the next health. Progressing and Unknown form one
// period, until the cluster succeeds or fails.
func continues(before, is rollout.Health) bool {
	open := func(h rollout.Health) bool { return h != rollout.Succeeded && h != rollout.Failed }
	return before == is || open(before) && open(is)
}
