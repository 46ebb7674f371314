package apply

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	// firstResend and lastResend bound the pause before a rejected manifest is sent again. It doubles with each
	// rejection.
	firstResend = time.Second
	lastResend  = 5 * time.Minute
	// changedResend bounds the pause if the object has changed since: the change may have removed the cause.
	changedResend = 5 * time.Second
	// lastForbidden bounds the pause after a forbidden request. A permission may be granted, and a quota raised, at any
	// time, and no watch of the engine reports that.
	lastForbidden = 30 * time.Second
)

// rejection is the last response of the API server that rejected a manifest, or that was forbidden.
type rejection struct {
	hash    string // of the manifest
	version string // of the object; empty: the object did not exist
	count   int    // of rejections in a row
	last    time.Time
	err     error
	read    bool // the read of the object was forbidden, so nothing was decided
}

// forbidden reports whether the client lacks a permission, or a quota is used up. The API server also uses this error
// for a namespace that is being deleted, which is a different case.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// withheldError is the error of an earlier request, which is not repeated until wait is over.
type withheldError struct {
	err  error
	wait time.Duration
}

func (h *withheldError) Error() string { return h.err.Error() }
func (h *withheldError) Unwrap() error { return h.err }

// blocksReads reports whether the object must not be read now, because the last read was forbidden.
func (r rejection) blocksReads(hash string, now time.Time) bool {
	return r.read && r.wait(hash, r.version, now) > 0
}

// wait returns how long the manifest must not be sent; 0: it may be sent now. Another manifest has no pause.
func (r rejection) wait(hash, version string, now time.Time) time.Duration {
	if r.count == 0 || r.hash != hash {
		return 0
	}
	longest := lastResend
	if forbidden(r.err) {
		longest = lastForbidden
	}
	pause := min(firstResend<<min(r.count-1, 16), longest)
	if r.version != version {
		pause = min(pause, changedResend)
	}
	return max(r.last.Add(pause).Sub(now), 0)
}

// again returns the rejection after a further response.
func (r rejection) again(hash, version string, now time.Time, err error) rejection {
	count := 1
	if r.hash == hash {
		count += r.count
	}
	return rejection{hash: hash, version: version, count: count, last: now, err: err}
}

// rejection decides whether a rejected manifest has to wait, and returns the change to report then.
func (m memory) rejection(t *task, d decision, now time.Time) (change Change, waits bool) {
	wait := m.rejected.wait(t.hash, t.observed.versionOrNone(), now)
	if wait == 0 || m.rejected.read || !d.writes() || t.definition.changed || recreates(t, m.rejected.err) {
		return Change{}, false
	}
	change = t.failed(m.rejected.err)
	change.RetryAfter = wait
	return change, true
}

// recreates reports whether an object must be deleted and created again, because its manifest changes an immutable
// field and the policy permits it.
func recreates(t *task, err error) bool {
	return t.Recreate == v1alpha1.RecreateIfImmutable && t.observed != nil && t.observed.marks.ours &&
		!t.observed.marks.shared && t.observed.marks.owners == 0 && !t.observed.deleting && !t.observed.noDelete &&
		apierrors.IsInvalid(err) && !changedConcurrently(err) &&
		immutable(err.Error())
}

// writes reports whether the decision writes the manifest to the API server.
func (d decision) writes() bool { return d.move != doNothing && d.move != compare }

func (s *observation) versionOrNone() string {
	if s == nil {
		return ""
	}
	return s.version
}
