package removal

import (
	"slices"
	"testing"
	"time"
)

// mutants are machines with one broken decision. The walk must find each of them.
var mutants = []struct {
	name string
	next machine
}{
	{"it does not wait for Jobs",
		func(o Observed) Step { o.Jobs.State = without(o.Jobs.State, NotStarted, Running); return Next(o) }},
	{"it takes a Job that failed for one that succeeded",
		func(o Observed) Step { o.Jobs.State = without(o.Jobs.State, Failed); return Next(o) }},
	{"it does not wait for the function", func(o Observed) Step {
		o.Func.State = without(o.Func.State, Running, NotStarted, Failed)
		return Next(o)
	}},
	{"it never runs a Job again", func(o Observed) Step {
		step := Next(o)
		if o.Jobs.State == Failed && o.Works == Present && !o.Forced {
			step.Actions = slices.DeleteFunc(step.Actions, func(a Action) bool { return a == DeleteHooks })
		}
		return step
	}},
	{"it never asks again", func(o Observed) Step {
		if o.Func.State == Failed {
			o.Func.Since = o.Now
		}
		return Next(o)
	}},
	{"it deletes the Work of the hooks with the others", func(o Observed) Step {
		step := Next(o)
		if i := slices.Index(step.Actions, DeleteWorks); i >= 0 {
			step.Actions = slices.Insert(slices.Clone(step.Actions), i, DeleteHooks)
		}
		return step
	}},
	{"it revokes the credentials while the Works go", func(o Observed) Step {
		step := Next(o)
		if o.Works == Terminating && o.Credentials == Present && len(step.Actions) == 0 && !step.Forced {
			step.Actions = []Action{RevokeCredentials}
		}
		return step
	}},
	{"it revokes the credentials while hooks have something", func(o Observed) Step {
		if o.Works == Absent && o.Jobs.State == Removing {
			o.Jobs.State = NotStarted
		}
		return Next(o)
	}},
	{"it does not revoke the credentials", func(o Observed) Step { o.Credentials = Absent; return Next(o) }},
	{"it does not revoke the credentials when forced", func(o Observed) Step {
		step := Next(o)
		if slices.Contains(step.Actions, StripFinalizers) {
			step.Actions = slices.DeleteFunc(step.Actions, func(a Action) bool { return a == RevokeCredentials })
		}
		return step
	}},
	{"it lets go without taking finalizers off", func(o Observed) Step {
		step := Next(o)
		step.Actions = slices.DeleteFunc(step.Actions, func(a Action) bool { return a == StripFinalizers })
		return step
	}},
	{"it forces before that is on record", func(o Observed) Step {
		step := Next(o)
		if step.Forced && !o.Forced {
			o.Forced = true
			return Next(o)
		}
		return step
	}},
	{"it never forces", func(o Observed) Step {
		if o.Now.After(started.Add(time.Minute)) {
			o.Now = started.Add(time.Minute)
		}
		return Next(o)
	}},
	{"it waits without a limit", func(o Observed) Step {
		if o.Now.After(nows[overdue]) {
			o.Now = nows[overdue]
		}
		return Next(o)
	}},
	{"it forces too early", func(o Observed) Step { o.Deadline = time.Minute; return Next(o) }},
	{"it forces an unreachable member", func(o Observed) Step {
		if o.Member == Unreachable {
			o.Member = Gone
		}
		return Next(o)
	}},
	{"it waits for a removed member until the deadline, without a record", func(o Observed) Step {
		step := Next(o)
		if o.Member == Gone && o.Works != Absent && !o.Forced && step.Forced {
			return Step{}
		}
		return step
	}},
	{"it does not reconcile at the deadline", func(o Observed) Step {
		step := Next(o)
		if len(step.Actions) == 0 && !step.Forced {
			step.After = 0
		}
		return step
	}},
	{"it loses the record",
		func(o Observed) Step { step := Next(o); step.Forced = step.Forced && !o.Forced; return step }},
	{"it ends before the Works are gone", func(o Observed) Step {
		if o.Works == Terminating {
			o.Works = Absent
		}
		return Next(o)
	}},
	{"it runs hooks where the add-on is not", func(o Observed) Step {
		if o.Works == Absent && o.Jobs.State == NotStarted && !o.Forced && o.Now.Before(nows[overdue]) && !o.ForceNow {
			o.Works = Present
		}
		return Next(o)
	}},
}

func without(state HookState, those ...HookState) HookState {
	if slices.Contains(those, state) {
		return Succeeded
	}
	return state
}

func TestMutants(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			if _, wrong := mutant.next.walk(); wrong == "" {
				t.Error("the walk does not notice")
			} else {
				t.Log(wrong)
			}
		})
	}
}
