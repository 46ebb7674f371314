package agent

import (
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// state is what the agent remembers of a Work between two reconciles. All of it but the AppliedWork only
// saves work. One reconcile at a time uses it.
type state struct {
	uid        types.UID
	generation int64
	applied    appliedWork
	plan       *plan
	changes    []apply.Change // of the last reconcile of the plan's objects
	evaluated  map[objectKey]evaluation

	reported    written
	detached    types.UID // the AppliedWork whose objects are known to have no owner references of earlier releases
	requestedAt time.Time // since when the deletion of the Work has been observed to be a request
	emptied     bool      // all objects of the Work were deleted
	retries     retryCounts
}

// written is the status that was written last.
type written struct {
	status  *v1alpha1.WorkStatus // nil: the cache has it
	version string               // of the Work since
	at      time.Time
}

// retryCounts counts what has to be tried again.
type retryCounts struct {
	failures  int       // how often in a row something was left to try again
	at        time.Time // when to try again
	overtaken int       // how often in a row others were quicker
}

// errOvertaken means that another client wrote the object that the agent was about to write. The agent reconciles
// again.
var errOvertaken = errors.New("another client changed the object")

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

func (a *Agent) stateOf(work string) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[work] == nil {
		a.known[work] = &state{applied: appliedWork{member: a.member.Client}}
	}
	return a.known[work]
}

// meet starts afresh with a Work that was made anew, and forgives a new generation the failures of the one before.
func (s *state) meet(work *v1alpha1.Work) {
	if s.uid != work.UID {
		*s = state{uid: work.UID, applied: s.applied, detached: s.detached}
	}
	if s.generation != work.Generation {
		s.generation = work.Generation
		s.succeeded()
	}
	order, err := resourceversion.CompareResourceVersion(work.ResourceVersion, s.reported.version)
	if err == nil && order >= 0 {
		s.reported.status = nil // the cache has it, or what others have made of it
	}
}

// status is the latest that is known.
func (s *state) status(work *v1alpha1.Work) *v1alpha1.WorkStatus {
	if s.reported.status != nil {
		return s.reported.status
	}
	return &work.Status
}

// confirm returns how much longer the request to delete a Work must be observed before it is acted on; 0: long enough.
func (s *state) confirm(now time.Time) time.Duration {
	if s.requestedAt.IsZero() {
		s.requestedAt = now
	}
	return max(0, s.requestedAt.Add(definition.ConfirmAfter).Sub(now))
}

// succeeded records that nothing is left to try again.
func (s *state) succeeded() { s.retries.failures, s.retries.at = 0, time.Time{} }

// retry records that something is left to try again, and returns how long to wait until then. A reconcile before that
// time, because of a change, does not postpone it.
func (s *state) retry(now time.Time) time.Duration {
	if !now.Before(s.retries.at) {
		s.retries.at = now.Add(jittered(min(firstRetry<<min(s.retries.failures, 10), lastRetry)))
		s.retries.failures++
	}
	return s.retries.at.Sub(now)
}

// again is how long to wait when others were quicker, which is soon forgotten.
func (s *state) again() time.Duration {
	s.retries.overtaken++
	return min(settle<<min(s.retries.overtaken-1, 10), lastRetry)
}

// jittered is a duration that differs from that of others, so that not all of them come back at the same time.
func jittered(d time.Duration) time.Duration { return d + time.Duration(rand.Int64N(int64(d)/4+1)) }
