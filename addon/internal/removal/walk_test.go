package removal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// modelState is a state of an add-on that is being removed.
type modelState struct {
	clock    uint8 // inTime, overdue, afterGracePeriod
	member   Member
	forceNow bool
	on       bool // the finalizer
	forced   bool // on record

	jobs, fun              HookState
	jobsPaused, funcPaused bool // the pause since the failure or the last call is over
	works, credentials     Presence
	stuck                  bool // finalizers of other clients block deletions forever
}

const (
	inTime uint8 = iota
	overdue
	afterGracePeriod
)

var (
	started = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	nows    = [...]time.Time{started.Add(time.Minute), started.Add(10 * time.Minute), started.Add(11 * time.Minute)}
)

func (w modelState) String() string {
	return strings.NewReplacer("main.", "").Replace(fmt.Sprintf("{clock %d, %s, forceNow %t, forced %t, jobs "+
		"%q/%t, func %q/%t, works %q, credentials %q, stuck %t, on %t}",
		w.clock, w.member, w.forceNow, w.forced, w.jobs, w.jobsPaused, w.fun, w.funcPaused, w.works, w.credentials, w.stuck,
		w.on))
}

// observed returns the state that the controller observes.
func (w modelState) observed() Observed {
	now := nows[w.clock]
	hook := func(state HookState, paused bool) Hook {
		since := now
		if paused {
			since = now.Add(-RetryPause)
		}
		return Hook{State: state, Since: since, Message: "status message"}
	}
	return Observed{
		Now: now, Started: started, Deadline: 10 * time.Minute, Finalizer: w.on, Forced: w.forced, ForceNow: w.forceNow,
		Member: w.member,
		Jobs:   hook(w.jobs, w.jobsPaused), Func: hook(w.fun, w.funcPaused), Works: w.works, Credentials: w.credentials,
	}
}

func (w modelState) hooksThere() bool { return w.jobs != NoHook && w.jobs != NotStarted }

// gone returns the state of objects that only finalizers of other clients protect.
func (w modelState) gone() Presence {
	if w.stuck {
		return Terminating
	}
	return Absent
}

// do executes an action and returns all possible results.
func (w modelState) do(action Action) []modelState {
	switch action {
	case RunHooks:
		if w.jobs == NotStarted {
			w.jobs, w.jobsPaused = Running, false
		}
	case AskFunc:
		w.funcPaused = false
		var all []modelState
		for _, w.fun = range []HookState{Running, Failed, Succeeded} {
			all = append(all, w)
		}
		return all
	case DeleteHooks:
		if w.hooksThere() {
			w.jobs = Removing
		}
	case DeleteWorks:
		if w.works == Present {
			w.works = Terminating
		}
	case StripFinalizers:
		if w.works != Absent {
			w.works = w.gone()
		}
		if w.hooksThere() {
			w.jobs = NotStarted
			if w.stuck {
				w.jobs = Removing
			}
		}
	case RevokeCredentials:
		if w.credentials == Present {
			w.credentials = w.gone()
		}
	case RemoveFinalizer:
		w.on = false
	}
	return []modelState{w}
}

// machine is the decision function of the walk: Next, or a broken one.
type machine func(Observed) Step

// reconcile returns the states that the controller can produce: it may stop before, between and after its actions.
func (m machine) reconcile(w modelState) (all []modelState) {
	step := m(w.observed())
	if step.Forced && !w.forced {
		w.forced = true
		return append(all, w)
	}
	reached := []modelState{w}
	for _, action := range step.Actions {
		var next []modelState
		for _, v := range reached {
			next = append(next, v.do(action)...)
		}
		reached = next
		all = append(all, reached...)
	}
	return all
}

// events returns the states that can follow without the controller.
func (w modelState) events() (all []modelState) {
	to := func(change func(*modelState)) {
		v := w
		if change(&v); v != w {
			all = append(all, v)
		}
	}
	to(func(v *modelState) { v.clock = min(v.clock+1, afterGracePeriod) })
	for _, member := range []Member{Reachable, Unreachable, Gone} {
		to(func(v *modelState) { v.member = member })
	}
	to(func(v *modelState) { v.forceNow = true })
	to(func(v *modelState) { v.jobsPaused = true })
	to(func(v *modelState) { v.funcPaused = true })
	if w.fun != NoHook {
		to(func(v *modelState) { v.fun = NotStarted }) // the controller restarts
	}
	if w.works == Present { // a user deletes the existing objects
		to(func(v *modelState) { v.works = Terminating })
	}
	if w.hooksThere() {
		to(func(v *modelState) { v.jobs = Removing })
	}
	if w.credentials == Present {
		to(func(v *modelState) { v.credentials = v.gone() })
	}
	return append(all, w.memberEvents()...)
}

// memberEvents returns the states after the reaction of a reachable member, and of the API server for objects without
// finalizers.
func (w modelState) memberEvents() (all []modelState) {
	if !w.stuck && w.credentials == Terminating {
		w.credentials = Absent
		all = append(all, w)
	}
	if w.member != Reachable {
		return all
	}
	to := func(change func(*modelState)) {
		v := w
		change(&v)
		all = append(all, v)
	}
	switch {
	case w.jobs == Running:
		to(func(v *modelState) { v.jobs = Succeeded })
		to(func(v *modelState) { v.jobs, v.jobsPaused = Failed, false })
	case w.jobs == Removing && !w.stuck:
		to(func(v *modelState) { v.jobs = NotStarted })
	}
	if w.works == Terminating && !w.stuck {
		to(func(v *modelState) { v.works = Absent })
	}
	return all
}

// permitted returns the reason why an action violates a guarantee in a state. Empty: it does not.
func (w modelState) permitted(action Action) string {
	late := w.clock != inTime || w.forceNow
	blocked := w.forced && w.stuck // by others
	switch {
	case action == DeleteWorks && w.works == Present && w.jobs != NoHook && w.jobs != Succeeded && !late && !w.forced &&
		w.member != Gone:
		return "Works are deleted before the hooks have succeeded"
	case action == DeleteWorks && w.works == Present && w.fun != NoHook && w.fun != Succeeded && !late && !w.forced:
		return "Works are deleted before the function of the add-on has succeeded"
	case action == StripFinalizers && !w.forced:
		return "finalizers are stripped before the force is recorded"
	case action == RevokeCredentials && (w.works != Absent || w.hooksThere()) && !w.forced:
		return "credentials are revoked before the Works are deleted"
	case action == RemoveFinalizer && w.credentials == Present:
		return "credentials remain"
	case action == RemoveFinalizer && (w.works != Absent || w.hooksThere()) && !blocked:
		return "Works remain"
	case action == RemoveFinalizer && w.credentials != Absent && !blocked:
		return "credentials that are being deleted remain"
	case action == RunHooks && w.works != Present:
		return "hooks run where the add-on is not installed"
	}
	return ""
}

// check returns the violation of a step in a state. Empty: there is none.
func (m machine) check(w modelState) string {
	step := m(w.observed())
	if !w.on {
		if len(step.Actions) > 0 || step.After != 0 || step.Forced {
			return "a step after the end of the removal"
		}
		return ""
	}
	if step.Forced && !w.forced {
		waits := w.works != Absent || w.hooksThere() || w.credentials == Terminating || w.fun != NoHook && w.fun != Succeeded
		switch {
		case len(step.Actions) > 0:
			return "the removal is forced before the force is recorded"
		case w.clock == inTime && w.member != Gone && !w.forceNow:
			return "the removal is forced before the deadline"
		case !waits:
			return "the removal is forced although nothing is pending"
		case step.After <= 0:
			return "no reconcile after the record"
		}
	}
	if w.forced && !step.Forced {
		return "a recorded force is not reported"
	}
	if len(step.Actions) == 0 && step.After <= 0 {
		return "no reconcile is scheduled"
	}
	limit := overdue
	if w.forced {
		limit = afterGracePeriod
	}
	if step.After > max(nows[limit].Sub(nows[w.clock]), time.Nanosecond) {
		return "the deadline passes without a reconcile"
	}
	reached := []modelState{w}
	for _, action := range step.Actions {
		var next []modelState
		for _, v := range reached {
			if violation := v.permitted(action); violation != "" {
				return violation
			}
			next = append(next, v.do(action)...)
		}
		if slices.Equal(next, reached) && action != StripFinalizers {
			return fmt.Sprintf("action %s has no effect", action)
		}
		reached = next
	}
	return ""
}

// alone runs only the controller and the clock, with hooks that never succeed, and reports whether the removal ends.
func (m machine) alone(w modelState) bool {
	for range 100 {
		if !w.on {
			return true
		}
		before := w
		if next := m.reconcile(w); len(next) > 0 {
			w = next[len(next)-1]
			if w.fun == Succeeded && before.fun != Succeeded {
				w.fun = Failed
			}
		}
		w.jobsPaused, w.funcPaused = true, true
		if w == before || w.fun == Failed && before.fun == Failed {
			w.clock = min(w.clock+1, afterGracePeriod)
		}
	}
	return false
}

// fair runs a responsive member and hooks, and reports whether the removal ends without force.
func (m machine) fair(w modelState) bool {
	w.member = Reachable
	for range 100 {
		if !w.on {
			return !w.forced
		}
		if next := m.reconcile(w); len(next) > 0 {
			w = next[len(next)-1] // the function succeeds
		}
		if next := w.memberEvents(); len(next) > 0 {
			w = next[0] // hooks succeed
		}
		w.jobsPaused, w.funcPaused = true, true
	}
	return false
}

// walk visits all reachable states and returns their number and the first violation.
func (m machine) walk() (states int, violation string) {
	var queue []modelState
	for _, stuck := range []bool{false, true} {
		for _, jobs := range []HookState{NoHook, NotStarted} {
			for _, fun := range []HookState{NoHook, NotStarted} {
				for _, works := range []Presence{Absent, Present} {
					for _, credentials := range []Presence{Absent, Present} {
						queue = append(queue,
							modelState{member: Reachable, on: true, jobs: jobs, fun: fun, works: works,
								credentials: credentials, stuck: stuck})
					}
				}
			}
		}
	}
	visited := map[modelState]bool{}
	for _, w := range queue {
		visited[w] = true
	}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if violation := m.check(w); violation != "" {
			return len(visited), fmt.Sprintf("%s: %s", violation, w)
		}
		if !m.alone(w) {
			return len(visited), fmt.Sprintf("the removal does not end: %s", w)
		}
		if w.clock == inTime && !w.forceNow && !w.forced && !w.stuck && w.on && !m.fair(w) {
			return len(visited), fmt.Sprintf("the removal does not end before the deadline: %s", w)
		}
		if !w.on {
			continue
		}
		for _, next := range append(m.reconcile(w), w.events()...) {
			if !visited[next] {
				visited[next] = true
				queue = append(queue, next)
			}
		}
	}
	return len(visited), ""
}

func TestNext_AllReachableStates(t *testing.T) {
	states, violation := machine(Next).walk()
	if violation != "" {
		t.Fatal(violation)
	}
	t.Logf("%d states", states)
	if states < 10000 {
		t.Fatal("want at least 10000 states")
	}
}
