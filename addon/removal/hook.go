package removal

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/health"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Hook is something that runs before the add-on is removed.
type Hook struct {
	State HookState
	// Since is when a hook was first seen to have failed, or when the function was asked last, by the clock that Now is of. Otherwise it
	// does not matter.
	Since time.Time
	// Message says in a sentence how it is doing, or what went wrong.
	Message string
}

// HookState says how far a hook is.
type HookState string

// The states of a hook. Any other is taken for Running.
const (
	NoHook HookState = ""
	// NotStarted: there is no Work of it, or the function has not been asked since the controller started.
	NotStarted HookState = "NotStarted"
	// Running: it is not done.
	Running   HookState = "Running"
	Succeeded HookState = "Succeeded"
	Failed    HookState = "Failed"
	// Removing: its Work is being deleted. The function never is in this state.
	Removing HookState = "Removing"
)

// JobsOf says how far hooks are that run on a member, all by the one Work that is given. Nil: NotStarted. They have succeeded when the
// member says that the Work as it is now is complete, or all ready where nothing in it comes to an end; and failed when it says that it is
// degraded. Since is for the caller to remember.
func JobsOf(work *workv1alpha1.Work) Hook {
	if work == nil {
		return Hook{State: NotStarted}
	}
	seen := health.Of(work)
	hook := Hook{State: Running, Message: seen.Message}
	complete := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionComplete)
	ready := seen.Applied == metav1.ConditionTrue && seen.Available == metav1.ConditionTrue
	switch {
	case seen.Deleting:
		hook.State = Removing
	case seen.Observed != seen.Generation:
		hook.Message = "" // it is about something before
	case seen.Degraded == metav1.ConditionTrue:
		hook.State = Failed
	case complete == nil && ready, complete != nil && complete.Status == metav1.ConditionTrue && complete.ObservedGeneration == seen.Generation:
		hook.State = Succeeded
	}
	return hook
}

// All says how far several hooks are together, such as those on a member and those on the one that hosts its agent. They have succeeded when all have, and what
// is to be done for one of them is to be done. None: NoHook.
func All(hooks ...Hook) Hook {
	all := Hook{}
	for _, hook := range hooks {
		switch {
		case hook.State == NoHook:
		case all.State == NoHook || urgency(hook.State) > urgency(all.State):
			all = hook
		case hook.State != all.State && urgency(hook.State) == urgency(all.State):
			all = Hook{State: Running} // one has succeeded, and the other is still to be run anew
		}
	}
	return all
}

// urgency says how much is to be done about a hook.
func urgency(state HookState) int {
	switch state {
	case NotStarted:
		return 3
	case Failed:
		return 2
	case Succeeded, Removing:
		return 0
	}
	return 1
}
