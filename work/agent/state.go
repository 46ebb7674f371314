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

// state is the state of a Work that the agent caches between reconciles. All of it except the AppliedWork is only an
// optimization. The workqueue never reconciles one Work concurrently, so state needs no lock.
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
	allDeleted  bool      // all objects of the Work were deleted
	retries     retryCounts
}

// written is the last written status.
type written struct {
	status  *v1alpha1.WorkStatus // nil: the cache has it
	version string               // of the Work since
	at      time.Time
}

// retryCounts counts retries.
type retryCounts struct {
	failures  int       // consecutive reconciles that needed a retry
	at        time.Time // when to retry
	conflicts int       // consecutive conflicts with other clients
}

// errChangedConcurrently means that another client wrote the object that the agent was about to write. The agent
// reconciles again.
var errChangedConcurrently = errors.New("another client changed the object")

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

func (a *Agent) stateOf(work string) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.states[work] == nil {
		a.states[work] = &state{applied: appliedWork{member: a.member.Client}}
	}
	return a.states[work]
}

// observe resets the state for a Work that was created again, and resets the retries for a new generation.
func (s *state) observe(work *v1alpha1.Work) {
	if s.uid != work.UID {
		*s = state{uid: work.UID, applied: s.applied, detached: s.detached}
	}
	if s.generation != work.Generation {
		s.generation = work.Generation
		s.succeeded()
	}
	order, err := resourceversion.CompareResourceVersion(work.ResourceVersion, s.reported.version)
	if err == nil && order >= 0 {
		s.reported.status = nil // the cache has this status, or a later one
	}
}

// status returns the latest known status.
func (s *state) status(work *v1alpha1.Work) *v1alpha1.WorkStatus {
	if s.reported.status != nil {
		return s.reported.status
	}
	return &work.Status
}

// confirm returns how much longer the agent must observe the request to delete a Work before it deletes objects; 0:
// long enough.
func (s *state) confirm(now time.Time) time.Duration {
	if s.requestedAt.IsZero() {
		s.requestedAt = now
	}
	return max(0, s.requestedAt.Add(definition.ConfirmAfter).Sub(now))
}

// succeeded records that no retry is pending.
func (s *state) succeeded() { s.retries.failures, s.retries.at = 0, time.Time{} }

// retry records that a retry is needed, and returns the delay until then. A reconcile before that time, because of a
// change, does not postpone it.
func (s *state) retry(now time.Time) time.Duration {
	if !now.Before(s.retries.at) {
		s.retries.at = now.Add(jittered(min(firstRetry<<min(s.retries.failures, 10), lastRetry)))
		s.retries.failures++
	}
	return s.retries.at.Sub(now)
}

// again returns the delay after a conflict with another client. The delay is reset after a reconcile without a
// conflict.
func (s *state) again() time.Duration {
	s.retries.conflicts++
	return min(batchDelay<<min(s.retries.conflicts-1, 10), lastRetry)
}

// jittered returns the duration plus up to 25 % jitter, so that Works are not reconciled all at the same time.
func jittered(d time.Duration) time.Duration { return d + time.Duration(rand.Int64N(int64(d)/4+1)) }
