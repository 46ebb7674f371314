package removal

import (
	"slices"
	"time"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Timeouts and intervals for states that no watch reports.
const (
	// DefaultDeadline is the deadline of a removal if none is set.
	DefaultDeadline = 15 * time.Minute
	// Timeout is the grace period after the deadline in which a reachable member can remove the objects of the Works.
	Timeout = time.Minute
	// RetryPause is the time between the failure of a hook and its next attempt.
	RetryPause = 10 * time.Second
	// AskPause is the time between two calls of the add-on's function while it is not done.
	AskPause = 5 * time.Second
)

// Observed is the observed state of an add-on that is being removed from a member.
type Observed struct {
	Now time.Time
	// Started is the deletionTimestamp of the MemberAddon. Zero: the MemberAddon is not being deleted, and no step
	// follows.
	Started time.Time
	// Deadline is the maximum duration of the removal. Zero or less: DefaultDeadline.
	Deadline time.Duration
	// Finalizer is true if muster's finalizer is on the MemberAddon.
	Finalizer bool
	// Forced is true if the removal is recorded as forced.
	Forced bool
	// ForceNow is true if the leave of the member is forced, or if removalDeadlineSeconds of the MemberAddon is 0. The
	// removal then waits for nothing.
	ForceNow bool

	// Member is the state of the member that must remove the objects.
	Member Member
	// Hosting is the name of the hosting member that Member describes, if only Works on that one are left. Empty: Member
	// describes the member itself.
	Hosting string
	// Jobs are the hooks that run on the member, all in one Work; see [JobsOf].
	Jobs Hook
	// Func is the function of the add-on.
	Func Hook
	// Works is the presence of the Works of the add-on without hooks: Present if at least one is.
	Works Presence
	// Credentials is the presence of the agent's credentials for the hub, including permissions: Present if at least
	// one object is.
	Credentials Presence
	// Failed is the last performed action, if it failed. It is reported while the action is still required.
	Failed Attempt
}

// Attempt is an action that was performed.
type Attempt struct {
	Action Action // empty: none
	Error  string // the error
}

// Member is the state of a member. A leaving member can remove objects until its leave is complete.
type Member string

// The states of a member. Other values are treated as Unreachable.
const (
	Reachable   Member = "Reachable"
	Unreachable Member = "Unreachable" // it may return
	Gone        Member = "Gone"        // the member does not exist any more
)

// Presence is the state of a set of objects.
type Presence string

// The states of objects. Other values are treated as Terminating.
const (
	Absent      Presence = ""
	Present     Presence = "Present"
	Terminating Presence = "Terminating" // the deletion of all existing ones has begun
)

// Action is an idempotent operation.
type Action string

// The actions.
const (
	RunHooks    Action = "RunHooks"    // create the Work of the hooks
	AskFunc     Action = "AskFunc"     // call the add-on's function
	DeleteHooks Action = "DeleteHooks" // delete the Work of the hooks
	DeleteWorks Action = "DeleteWorks" // delete the Works of the add-on
	// StripFinalizers deletes all Works, including those of hooks, and removes the agent's finalizer: applied objects
	// stay.
	StripFinalizers   Action = "StripFinalizers"
	RevokeCredentials Action = "RevokeCredentials"
	RemoveFinalizer   Action = "RemoveFinalizer" // remove muster's finalizer from the MemberAddon: the last action
)

// Step is the next step of a removal.
type Step struct {
	// Actions are the required actions in order. A later action requires the earlier ones.
	Actions []Action
	// Forced is true if the removal must be recorded as forced before the next reconcile.
	Forced bool
	// Reason is PreDelete, Removing, HookFailed, RevokeFailed or DeadlineExceeded. Empty: no step.
	Reason string
	// Message is the message for users, at most 1024 bytes. It contains no text that changes with time alone.
	Message string
	// After is the duration until the next reconcile without an event. Zero: none.
	After time.Duration
	// Final is true if the step cannot be undone. Verify it by an observation without caches.
	Final bool
}

// Failed reports whether the removal does not proceed as planned.
func (s Step) Failed() bool {
	switch s.Reason {
	case v1alpha1.ReasonHookFailed, v1alpha1.ReasonRevokeFailed, v1alpha1.ReasonDeadlineExceeded:
		return true
	}
	return false
}

// Next returns the next step of the removal of an add-on from a member.
func Next(o Observed) Step {
	if o.Started.IsZero() || !o.Finalizer {
		return Step{}
	}
	r := newRemoval(o)
	switch {
	case r.stage == finalizer:
		r.addAction(RemoveFinalizer)
	case r.mustForce() && !o.Forced:
		// The record must precede the action: afterwards the cause could not be determined.
		r.step.Forced, r.step.After = true, time.Nanosecond
	case o.Forced && r.releasesWorks():
		r.addAction(StripFinalizers)
		if o.Credentials == Present {
			r.addAction(RevokeCredentials)
		}
		r.addAction(RemoveFinalizer)
	default:
		r.continueStage()
	}
	r.step.Reason, r.step.Message = r.reason(), r.message()
	for _, action := range r.step.Actions {
		switch action {
		case StripFinalizers, RevokeCredentials, RemoveFinalizer:
			r.step.Final = true
		}
	}
	return r.step
}

// stage is the stage of a removal.
type stage int

const (
	hooks stage = iota
	works
	hookWorks
	credentials
	finalizer
)

type removal struct {
	Observed
	stage    stage
	deadline time.Time
	step     Step
}

func newRemoval(o Observed) *removal {
	r := &removal{Observed: o, step: Step{Forced: o.Forced}}
	if r.Deadline <= 0 {
		r.Deadline = DefaultDeadline
	}
	r.deadline = o.Started.Add(r.Deadline)
	switch {
	case !o.Forced && (r.awaitsJobs() || r.awaitsFunc()):
		r.stage = hooks
	case o.Works != Absent:
		r.stage = works
	case o.Jobs.State != NoHook && o.Jobs.State != NotStarted:
		r.stage = hookWorks
	case o.Credentials != Absent:
		r.stage = credentials
	default:
		r.stage = finalizer
	}
	return r
}

// awaitsJobs reports whether hooks on the member must complete first. They are useless without the add-on's Works, and
// cannot run on a member that does not exist.
func (r *removal) awaitsJobs() bool {
	return r.Jobs.State != NoHook && r.Jobs.State != Succeeded && r.Works == Present && r.Member != Gone
}

// awaitsFunc reports whether the add-on's function must complete first. It is called even if there are no Works, but
// not once their deletion has begun, which cannot be undone.
func (r *removal) awaitsFunc() bool {
	return r.Func.State != NoHook && r.Func.State != Succeeded && (r.Works == Present || r.Works == Absent)
}

func (r *removal) overdue() bool { return !r.Now.Before(r.deadline) }

// fails reports whether a required action has failed.
func (r *removal) fails() bool { return slices.Contains(r.step.Actions, r.Failed.Action) }

// mustForce reports whether the removal must stop waiting.
func (r *removal) mustForce() bool {
	switch {
	case r.stage == credentials && r.Credentials == Present:
		return false // this is an action of the hub, not a wait
	case r.ForceNow || r.overdue():
		return true
	}
	return r.Member == Gone && (r.stage == works || r.stage == hookWorks)
}

// releasesWorks reports whether a forced removal must release the Works.
func (r *removal) releasesWorks() bool {
	return r.Member != Reachable || r.ForceNow || r.stage == credentials && r.Credentials != Present ||
		!r.Now.Before(r.deadline.Add(Timeout))
}

// continueStage continues with the current stage.
func (r *removal) continueStage() {
	switch until := r.deadline; {
	case r.Forced && r.stage != credentials:
		r.scheduleAt(until.Add(Timeout))
	default:
		r.scheduleAt(until)
	}
	switch r.stage {
	case hooks:
		r.runHooks()
	case works:
		if r.Works == Present {
			r.addAction(DeleteWorks)
		}
	case hookWorks:
		if r.Jobs.State != Removing {
			r.addAction(DeleteHooks)
		}
	case credentials:
		if r.Credentials == Present {
			r.addAction(RevokeCredentials)
		}
	}
}

func (r *removal) runHooks() {
	if r.awaitsJobs() {
		switch again := r.Jobs.Since.Add(RetryPause); {
		case r.Jobs.State == NotStarted:
			r.addAction(RunHooks)
		case r.Jobs.State == Failed && r.Now.Before(again):
			r.scheduleAt(again)
		case r.Jobs.State == Failed:
			r.addAction(DeleteHooks)
		}
	}
	if r.awaitsFunc() {
		again := r.Func.Since.Add(AskPause)
		if r.Func.State == Failed {
			again = r.Func.Since.Add(RetryPause)
		}
		if r.Func.State == NotStarted || !r.Now.Before(again) {
			r.addAction(AskFunc)
			return
		}
		r.scheduleAt(again)
	}
}

func (r *removal) addAction(action Action) { r.step.Actions = append(r.step.Actions, action) }

// scheduleAt schedules the next reconcile, at once if the time has passed.
func (r *removal) scheduleAt(at time.Time) {
	after := max(at.Sub(r.Now), time.Nanosecond)
	if r.step.After == 0 || after < r.step.After {
		r.step.After = after
	}
}
