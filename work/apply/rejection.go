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
	// changedResend bounds the pause when the object has changed since: the change may be what was in the way.
	changedResend = 5 * time.Second
	// lastForbidden bounds the pause after a request that was forbidden: a permission may be granted, and a quota raised,
	// at any time, and nothing that is watched tells.
	lastForbidden = 30 * time.Second
)

// rejection is the last answer of the API server to a manifest that it does not accept, or to a client that may not
// apply it.
type rejection struct {
	hash    string // of the manifest
	version string // of the object; empty: it was not there
	count   int    // of rejections in a row
	last    time.Time
	err     error
	read    bool // the read of the object was forbidden, before anything was decided
}

// forbidden reports whether the client lacks a permission, or a quota is used up. A namespace that is being deleted is
// answered as forbidden, too, and is another matter.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// heldBackError is an error that is remembered, and returned again until wait is over.
type heldBackError struct {
	err  error
	wait time.Duration
}

func (h *heldBackError) Error() string { return h.err.Error() }
func (h *heldBackError) Unwrap() error { return h.err }

// blocksReads reports whether the object is not read now, since the last read of it was forbidden.
func (r rejection) blocksReads(hash string, now time.Time) bool {
	return r.read && r.wait(hash, r.version, now) > 0
}

// wait returns how long a manifest is not sent again; 0: it may be sent now. Another manifest is sent at once.
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

// again returns the rejection after another answer.
func (r rejection) again(hash, version string, now time.Time, err error) rejection {
	count := 1
	if r.hash == hash {
		count += r.count
	}
	return rejection{hash: hash, version: version, count: count, last: now, err: err}
}

// rejection decides whether a manifest that was rejected has to wait, and what is said then.
func (m memory) rejection(t *task, d decision, now time.Time) (change Change, waits bool) {
	wait := m.rejected.wait(t.hash, t.seen.versionOrNone(), now)
	if wait == 0 || m.rejected.read || !d.writes() || t.resend || recreates(t, m.rejected.err) {
		return Change{}, false
	}
	change = t.failed(m.rejected.err)
	change.RetryAfter = wait
	return change, true
}

// recreates reports whether an object must be deleted and created again, since its manifest changes what cannot be
// changed.
func recreates(t *task, err error) bool {
	return t.Recreate == v1alpha1.RecreateIfImmutable && t.seen != nil && t.seen.ours && !t.seen.shared &&
		t.seen.owners == 0 && !t.seen.deleting && !t.seen.noDelete && apierrors.IsInvalid(err) && !overtaken(err) &&
		immutable(err.Error())
}

// writes reports whether a decision sends the manifest to be stored.
func (d decision) writes() bool { return d.move != leave && d.move != compare }

func (s *seen) versionOrNone() string {
	if s == nil {
		return ""
	}
	return s.version
}
