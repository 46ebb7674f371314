package removal

import (
	"slices"
	"time"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// How long is waited for what no watch tells of.
const (
	// DefaultDeadline is how long a removal may take where nothing else is said.
	DefaultDeadline = 15 * time.Minute
	// Patience is how long past the deadline a member that can be reached has to take back the Works.
	Patience = time.Minute
	// RetryPause is the time between the failure of a hook and its next try.
	RetryPause = 10 * time.Second
	// AskPause is the time between two questions to the add-on's function while it is not done.
	AskPause = 5 * time.Second
)

// Observed is what is known of an add-on that is to go from a member.
type Observed struct {
	Now time.Time
	// Started is the deletionTimestamp of the MemberAddon. Zero: it is not to go, and there is nothing to do.
	Started time.Time
	// Deadline is how long it may take. Zero or less: DefaultDeadline.
	Deadline time.Duration
	// Finalizer: ours is on the MemberAddon.
	Finalizer bool
	// Forced: that is on record.
	Forced bool
	// ForceNow: the leave of the member has been forced, or the deadline of the MemberAddon was set to 0, so nothing is to be waited for.
	ForceNow bool

	// Member is whether anybody is there to take back what there is.
	Member Member
	// Hosting is the name of the hosting member that Member is about, where the member itself has nothing left. Empty: it is about the member.
	Hosting string
	// Jobs are the hooks that run on the member, all by one Work; see [JobsOf].
	Jobs Hook
	// Func is the add-on's own function.
	Func Hook
	// Works of the add-on, hooks excepted: Present if one of them is.
	Works Presence
	// Credentials of its agent for the hub, permissions included: Present if something of them is.
	Credentials Presence
	// Failed is the action that was carried out last, if that failed. It is told of as long as it is to be done.
	Failed Attempt
}

// Attempt is an action that was tried.
type Attempt struct {
	Action Action // empty: there was none
	Error  string // why it failed
}

// Member says whether a member can take back what it has. One that leaves can, until its leave has come to an end.
type Member string

// The states of a member. Any other is taken for Unreachable.
const (
	Reachable   Member = "Reachable"
	Unreachable Member = "Unreachable" // nobody knows: it may come back
	Gone        Member = "Gone"        // it is no member any more
)

// Presence says whether objects are there.
type Presence string

// The states in which objects can be observed. Any other is taken for Terminating.
const (
	Absent      Presence = ""
	Present     Presence = "Present"
	Terminating Presence = "Terminating" // the deletion of all that are there has begun
)

// Action is something to be done. Each is idempotent.
type Action string

// The actions.
const (
	RunHooks          Action = "RunHooks"        // make the Work of the hooks
	AskFunc           Action = "AskFunc"         // call the add-on's function
	DeleteHooks       Action = "DeleteHooks"     // delete it
	DeleteWorks       Action = "DeleteWorks"     // delete the Works of the add-on
	StripFinalizers   Action = "StripFinalizers" // delete all Works, hooks included, and take the agent's finalizer off: what they applied stays
	RevokeCredentials Action = "RevokeCredentials"
	RemoveFinalizer   Action = "RemoveFinalizer" // take ours off the MemberAddon: the last that is done
)

// Step is what is to be done next.
type Step struct {
	// Actions in their order. A later one relies on an earlier one.
	Actions []Action
	// Forced is what is to be on record before the next look.
	Forced bool
	// Reason is PreDelete, Removing, HookFailed, RevokeFailed or DeadlineExceeded of the API; empty where there is nothing to be done at all.
	Reason string
	// Message says in a sentence what happens, of at most 1024 bytes. Nothing in it goes on with time.
	Message string
	// After is when to look again although nothing has happened. Zero: never.
	After time.Duration
	// Final is true when the step cannot be taken back. It must not be taken on what caches show.
	Final bool
}

// Failed reports whether it does not go as it should.
func (s Step) Failed() bool {
	switch s.Reason {
	case v1alpha1.ReasonHookFailed, v1alpha1.ReasonRevokeFailed, v1alpha1.ReasonDeadlineExceeded:
		return true
	}
	return false
}

// Next decides what is done next to remove an add-on from a member.
func Next(o Observed) Step {
	if o.Started.IsZero() || !o.Finalizer {
		return Step{}
	}
	r := newRemoval(o)
	switch {
	case r.stage == finalizer:
		r.do(RemoveFinalizer)
	case r.mustForce() && !o.Forced:
		// Afterwards nothing would tell why.
		r.step.Forced, r.step.After = true, time.Nanosecond
	case o.Forced && r.letGo():
		r.do(StripFinalizers)
		if o.Credentials == Present {
			r.do(RevokeCredentials)
		}
		r.do(RemoveFinalizer)
	default:
		r.goOn()
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

// stage is how far a removal is: what is waited for, or to be done.
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

// awaitsJobs reports whether hooks on the member are to come to their end first. Without the add-on's Works there they are of no
// use, and nobody runs them on a member that is gone.
func (r *removal) awaitsJobs() bool {
	return r.Jobs.State != NoHook && r.Jobs.State != Succeeded && r.Works == Present && r.Member != Gone
}

// awaitsFunc reports whether the function is to say that it is done. It is asked also where nothing is on the member, but not once the Works are
// going, which nobody can undo.
func (r *removal) awaitsFunc() bool {
	return r.Func.State != NoHook && r.Func.State != Succeeded && (r.Works == Present || r.Works == Absent)
}

func (r *removal) overdue() bool { return !r.Now.Before(r.deadline) }

// fails reports whether what is to be done was tried, and failed.
func (r *removal) fails() bool { return slices.Contains(r.step.Actions, r.Failed.Action) }

// mustForce reports whether what is waited for is not to be waited for any more.
func (r *removal) mustForce() bool {
	switch {
	case r.stage == credentials && r.Credentials == Present:
		return false // that is to be done, and not waited for
	case r.ForceNow || r.overdue():
		return true
	}
	return r.Member == Gone && (r.stage == works || r.stage == hookWorks)
}

// letGo reports whether a removal that is forced waits for nobody any more.
func (r *removal) letGo() bool {
	return r.Member != Reachable || r.ForceNow || r.stage == credentials && r.Credentials != Present || !r.Now.Before(r.deadline.Add(Patience))
}

// goOn takes the next step of the way out.
func (r *removal) goOn() {
	switch until := r.deadline; {
	case r.Forced && r.stage != credentials:
		r.wake(until.Add(Patience))
	default:
		r.wake(until)
	}
	switch r.stage {
	case hooks:
		r.runHooks()
	case works:
		if r.Works == Present {
			r.do(DeleteWorks)
		}
	case hookWorks:
		if r.Jobs.State != Removing {
			r.do(DeleteHooks)
		}
	case credentials:
		if r.Credentials == Present {
			r.do(RevokeCredentials)
		}
	}
}

func (r *removal) runHooks() {
	if r.awaitsJobs() {
		switch again := r.Jobs.Since.Add(RetryPause); {
		case r.Jobs.State == NotStarted:
			r.do(RunHooks)
		case r.Jobs.State == Failed && r.Now.Before(again):
			r.wake(again)
		case r.Jobs.State == Failed:
			r.do(DeleteHooks)
		}
	}
	if r.awaitsFunc() {
		again := r.Func.Since.Add(AskPause)
		if r.Func.State == Failed {
			again = r.Func.Since.Add(RetryPause)
		}
		if r.Func.State == NotStarted || !r.Now.Before(again) {
			r.do(AskFunc)
			return
		}
		r.wake(again)
	}
}

func (r *removal) do(action Action) { r.step.Actions = append(r.step.Actions, action) }

// wake has the removal looked at again at a time, or at once if that has come.
func (r *removal) wake(at time.Time) {
	after := max(at.Sub(r.Now), time.Nanosecond)
	if r.step.After == 0 || after < r.step.After {
		r.step.After = after
	}
}
