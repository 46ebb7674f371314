package removal

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/health"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Hook is the state of an operation that runs before the add-on is removed.
type Hook struct {
	State HookState
	// Since is the time at which a failure of the hook was first observed, or of the last call of the function, by the
	// clock of Now. In other states it has no meaning.
	Since time.Time
	// Message describes the progress or the error.
	Message string
}

// HookState is the progress of a hook.
type HookState string

// The states of a hook. Other values are treated as Running.
const (
	NoHook HookState = ""
	// NotStarted means that there is no Work of the hook, or that the function was not called since the controller
	// started.
	NotStarted HookState = "NotStarted"
	// Running means that the hook is not done.
	Running   HookState = "Running"
	Succeeded HookState = "Succeeded"
	Failed    HookState = "Failed"
	// Removing means that the Work of the hook is being deleted. A function never has this state.
	Removing HookState = "Removing"
)

// JobsOf returns the state of the hooks in a Work. A nil Work is NotStarted. The hooks have succeeded when the member
// reports the current generation of the Work as complete, or as available if nothing in the Work runs to completion.
// They have failed when the member reports the Work as degraded. The caller must set Since.
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
		hook.Message = "" // the status describes an earlier generation
	case seen.Degraded == metav1.ConditionTrue:
		hook.State = Failed
	case complete == nil && ready,
		complete != nil && complete.Status == metav1.ConditionTrue && complete.ObservedGeneration == seen.Generation:
		hook.State = Succeeded
	}
	return hook
}

// All combines the states of several hooks, for example those on a member and on its hosting member. The result is
// Succeeded when all have succeeded, and otherwise the state that requires an action. Without hooks it is NoHook.
func All(hooks ...Hook) Hook {
	all := Hook{}
	for _, hook := range hooks {
		switch {
		case hook.State == NoHook:
		case all.State == NoHook || urgency(hook.State) > urgency(all.State):
			all = hook
		case hook.State != all.State && urgency(hook.State) == urgency(all.State):
			all = Hook{State: Running} // one has succeeded, and the other must run again
		}
	}
	return all
}

// urgency returns the priority of the action that a state requires.
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
