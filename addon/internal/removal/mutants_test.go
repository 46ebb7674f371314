package removal

import (
	"slices"
	"testing"
	"time"
)

// mutants are decision functions with one wrong decision. The walk must find a violation for each of them.
var mutants = []struct {
	name string
	next machine
}{
	{"Next does not wait for Jobs",
		func(o Observed) Step { o.Jobs.State = succeededIf(o.Jobs.State, NotStarted, Running); return Next(o) }},
	{"Next treats a failed Job as succeeded",
		func(o Observed) Step { o.Jobs.State = succeededIf(o.Jobs.State, Failed); return Next(o) }},
	{"Next does not wait for the function", func(o Observed) Step {
		o.Func.State = succeededIf(o.Func.State, Running, NotStarted, Failed)
		return Next(o)
	}},
	{"Next never runs a Job again", func(o Observed) Step {
		step := Next(o)
		if o.Jobs.State == Failed && o.Works == Present && !o.Forced {
			step.Actions = slices.DeleteFunc(step.Actions, func(a Action) bool { return a == DeleteHooks })
		}
		return step
	}},
	{"Next never calls a failed function again", func(o Observed) Step {
		if o.Func.State == Failed {
			o.Func.Since = o.Now
		}
		return Next(o)
	}},
	{"Next deletes the Work of the hooks with the others", func(o Observed) Step {
		step := Next(o)
		if i := slices.Index(step.Actions, DeleteWorks); i >= 0 {
			step.Actions = slices.Insert(slices.Clone(step.Actions), i, DeleteHooks)
		}
		return step
	}},
	{"Next revokes the credentials while the Works are being deleted", func(o Observed) Step {
		step := Next(o)
		if o.Works == Terminating && o.Credentials == Present && len(step.Actions) == 0 && !step.Forced {
			step.Actions = []Action{RevokeCredentials}
		}
		return step
	}},
	{"Next revokes the credentials while objects of hooks exist", func(o Observed) Step {
		if o.Works == Absent && o.Jobs.State == Removing {
			o.Jobs.State = NotStarted
		}
		return Next(o)
	}},
	{"Next does not revoke the credentials", func(o Observed) Step { o.Credentials = Absent; return Next(o) }},
	{"Next does not revoke the credentials when forced", func(o Observed) Step {
		step := Next(o)
		if slices.Contains(step.Actions, StripFinalizers) {
			step.Actions = slices.DeleteFunc(step.Actions, func(a Action) bool { return a == RevokeCredentials })
		}
		return step
	}},
	{"Next does not strip finalizers", func(o Observed) Step {
		step := Next(o)
		step.Actions = slices.DeleteFunc(step.Actions, func(a Action) bool { return a == StripFinalizers })
		return step
	}},
	{"Next forces the removal before the force is recorded", func(o Observed) Step {
		step := Next(o)
		if step.Forced && !o.Forced {
			o.Forced = true
			return Next(o)
		}
		return step
	}},
	{"Next never forces the removal", func(o Observed) Step {
		if o.Now.After(started.Add(time.Minute)) {
			o.Now = started.Add(time.Minute)
		}
		return Next(o)
	}},
	{"Next waits without a limit", func(o Observed) Step {
		if o.Now.After(nows[overdue]) {
			o.Now = nows[overdue]
		}
		return Next(o)
	}},
	{"Next forces the removal before the deadline", func(o Observed) Step { o.Deadline = time.Minute; return Next(o) }},
	{"Next treats an unreachable member as removed", func(o Observed) Step {
		if o.Member == Unreachable {
			o.Member = Gone
		}
		return Next(o)
	}},
	{"Next waits for a removed member until the deadline, without a record", func(o Observed) Step {
		step := Next(o)
		if o.Member == Gone && o.Works != Absent && !o.Forced && step.Forced {
			return Step{}
		}
		return step
	}},
	{"Next does not reconcile at the deadline", func(o Observed) Step {
		step := Next(o)
		if len(step.Actions) == 0 && !step.Forced {
			step.After = 0
		}
		return step
	}},
	{"Next does not report a recorded force",
		func(o Observed) Step { step := Next(o); step.Forced = step.Forced && !o.Forced; return step }},
	{"Next ends the removal before the Works are deleted", func(o Observed) Step {
		if o.Works == Terminating {
			o.Works = Absent
		}
		return Next(o)
	}},
	{"Next runs hooks where the add-on is not installed", func(o Observed) Step {
		if o.Works == Absent && o.Jobs.State == NotStarted && !o.Forced && o.Now.Before(nows[overdue]) && !o.ForceNow {
			o.Works = Present
		}
		return Next(o)
	}},
}

func succeededIf(state HookState, states ...HookState) HookState {
	if slices.Contains(states, state) {
		return Succeeded
	}
	return state
}

func TestMutants(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			if _, violation := mutant.next.walk(); violation == "" {
				t.Error("want the walk to find a violation, got none")
			} else {
				t.Log(violation)
			}
		})
	}
}
