package removal

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// going returns an add-on whose removal from a reachable member has lasted one of its ten minutes.
func going(changes ...func(*Observed)) Observed {
	o := Observed{
		Now: started.Add(time.Minute), Started: started, Deadline: 10 * time.Minute, Finalizer: true, Member: Reachable,
		Works: Present, Credentials: Present,
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func jobs(state HookState, ago time.Duration) func(*Observed) {
	return func(o *Observed) { o.Jobs = Hook{state, o.Now.Add(-ago), "Job x/bye: it says so"} }
}

func function(state HookState, ago time.Duration) func(*Observed) {
	return func(o *Observed) { o.Func = Hook{state, o.Now.Add(-ago), "42 left"} }
}

func on(member Member) func(*Observed)    { return func(o *Observed) { o.Member = member } }
func worksAre(p Presence) func(*Observed) { return func(o *Observed) { o.Works = p } }
func accessIs(p Presence) func(*Observed) { return func(o *Observed) { o.Credentials = p } }
func minute(n float64) func(*Observed) {
	return func(o *Observed) { o.Now = started.Add(time.Duration(n * float64(time.Minute))) }
}
func hostedOn(name string) func(*Observed) { return func(o *Observed) { o.Hosting = name } }
func failed(action Action) func(*Observed) {
	return func(o *Observed) { o.Failed = Attempt{action, "a webhook denied the request"} }
}
func onRecord(o *Observed) { o.Forced = true }
func forceNow(o *Observed) { o.ForceNow = true }

func TestNext(t *testing.T) {
	for _, test := range []struct {
		reason   string
		observed Observed
		want     string // the reason, actions, recorded or final, and the next reconcile
		message  string
	}{
		{"it is not to go", Observed{Finalizer: true, Works: Present}, "", ""},
		{"it has gone", going(func(o *Observed) { o.Finalizer = false }), "", ""},
		{"it has no hooks: its Works go", going(), "Removing DeleteWorks 9m0s", "The member is removing the objects. " +
			"The deadline is 2026-01-02T12:10:00Z."},
		{"where nothing else is said it has 15 minutes", going(func(o *Observed) { o.Deadline = 0 }),
			"Removing DeleteWorks 14m0s", "The member is removing the objects. The deadline is 2026-01-02T12:15:00Z."},
		{"hooks come first", going(jobs(NotStarted, 0), function(NotStarted, 0)), "PreDelete RunHooks AskFunc 9m0s",
			"A pre-delete hook is running. Job x/bye: it says so. The add-on prepares its removal. 42 left. The deadline " +
				"is 2026-01-02T12:10:00Z."},
		{"they are waited for", going(jobs(Running, 0), function(Succeeded, 0)), "PreDelete 9m0s",
			"A pre-delete hook is running. Job x/bye: it says so. The deadline is 2026-01-02T12:10:00Z."},
		{"also on a member that cannot be reached", going(jobs(Running, 0), on(Unreachable)), "PreDelete 9m0s",
			"A pre-delete hook is running. Job x/bye: it says so. The member cannot be reached. The deadline is " +
				"2026-01-02T12:10:00Z."},
		{"one that has failed is not run again at once", going(jobs(Failed, time.Second)), "HookFailed 9s",
			"A pre-delete hook has failed and is retried. Job x/bye: it says so. The deadline is 2026-01-02T12:10:00Z."},
		{"but then", going(jobs(Failed, RetryPause)), "HookFailed DeleteHooks 9m0s", "A pre-delete hook has failed " +
			"and is retried. Job x/bye: it says so. The deadline is 2026-01-02T12:10:00Z."},
		{"when what is left of it is gone", going(jobs(Removing, 0)), "PreDelete 9m0s", "A pre-delete hook is " +
			"running. Job x/bye: it says so. The deadline is 2026-01-02T12:10:00Z."},
		{"a function that is not done is called again", going(function(Running, time.Second)), "PreDelete 4s",
			"The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"after a while", going(function(Running, AskPause)), "PreDelete AskFunc 9m0s", "The add-on prepares its " +
			"removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"one that has failed later", going(function(Failed, AskPause)), "HookFailed 5s",
			"The preparation of the removal has failed and is retried. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"the next reconcile is not later than the deadline", going(minute(9.99), function(Running, 0)), "PreDelete 600ms",
			"The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"when hooks have succeeded the Works go, and theirs stays", going(jobs(Succeeded, 0), function(Succeeded, 0)),
			"Removing DeleteWorks 9m0s", "The member is removing the objects. The deadline is 2026-01-02T12:10:00Z."},
		{"it is waited for what the member takes back", going(worksAre(Terminating), on(Unreachable)), "Removing 9m0s",
			"The member is removing the objects. The member cannot be reached. The deadline is 2026-01-02T12:10:00Z."},
		{"or a member that hosts the agent, by its name", going(worksAre(Terminating), on(Unreachable), hostedOn("west")),
			"Removing 9m0s",
			"The member is removing the objects. Member west, which hosts the add-on agent, cannot be reached. The " +
				"deadline is 2026-01-02T12:10:00Z."},
		{"which may be what is gone", going(worksAre(Terminating), on(Gone), hostedOn("west")),
			"DeadlineExceeded forced 1ns",
			"Member west, which hosts the add-on agent, no longer exists. The member is removing the objects. The removal " +
				"continues without waiting."},
		{"what is going already needs no hooks any more",
			going(worksAre(Terminating), jobs(NotStarted, 0), function(NotStarted, 0)), "Removing 9m0s",
			"The member is removing the objects. The deadline is 2026-01-02T12:10:00Z."},
		{"then goes what hooks have left", going(worksAre(Absent), jobs(Succeeded, 0)), "Removing DeleteHooks 9m0s",
			"The member is removing the objects of the hooks. The deadline is 2026-01-02T12:10:00Z."},
		{"and is waited for", going(worksAre(Absent), jobs(Removing, 0)), "Removing 9m0s",
			"The member is removing the objects of the hooks. The deadline is 2026-01-02T12:10:00Z."},
		{"then the credentials", going(worksAre(Absent)), "Removing RevokeCredentials final 9m0s",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"and they are waited for", going(worksAre(Absent), accessIs(Terminating)), "Removing 9m0s",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"then it is over", going(worksAre(Absent), accessIs(Absent)), "Removing RemoveFinalizer final",
			"The add-on is removed."},
		{"an add-on that was never there has nothing to say goodbye for by a Job, but may by its function",
			going(worksAre(Absent), accessIs(Absent), jobs(NotStarted, 0), function(NotStarted, 0)), "PreDelete AskFunc 9m0s",
			"The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},

		{"the deadline passes while a hook runs: that goes on record", going(minute(10), jobs(Failed, 0)),
			"DeadlineExceeded forced 1ns",
			"The deadline of the removal has passed. A pre-delete hook has failed and is retried. Job x/bye: it says " +
				"so. The removal continues without waiting."},
		{"hooks are given up, and the member has a minute more", going(minute(10), jobs(Failed, 0), onRecord),
			"DeadlineExceeded DeleteWorks forced 1m0s",
			"The deadline of the removal has passed. The member has until 2026-01-02T12:11:00Z to remove the objects; " +
				"the remaining objects then stay on the member."},
		{"which it takes", going(minute(10.5), jobs(Failed, 0), onRecord, worksAre(Absent)),
			"DeadlineExceeded DeleteHooks forced 30s",
			"The deadline of the removal has passed. The member has until 2026-01-02T12:11:00Z to remove the objects; " +
				"the remaining objects then stay on the member."},
		{"and the credentials outlive that", going(minute(10.5), onRecord, worksAre(Absent)),
			"DeadlineExceeded RevokeCredentials forced final 1ns",
			"The deadline of the removal has passed. The access of the add-on agent to the hub is being revoked."},
		{"or not", going(minute(11), onRecord, worksAre(Terminating)), "DeadlineExceeded StripFinalizers " +
			"RevokeCredentials RemoveFinalizer forced final", "The deadline of the removal has passed. The remaining " +
			"objects stay on the member."},
		{"a member that cannot be reached has none", going(minute(10), onRecord, on(Unreachable), worksAre(Terminating)),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The deadline of the removal has passed. The remaining objects stay on the member."},
		{"finalizers of others do not block the removal",
			going(minute(10), onRecord, worksAre(Absent), accessIs(Terminating)),
			"DeadlineExceeded StripFinalizers RemoveFinalizer forced final",
			"The deadline of the removal has passed. The remaining objects stay on the member."},
		{"what need not be waited for is not forced, however late", going(minute(60), worksAre(Absent)),
			"Removing RevokeCredentials final 1ns",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"nor what is over", going(minute(60), worksAre(Absent), accessIs(Absent)), "Removing RemoveFinalizer final",
			"The add-on is removed."},
		{"that it was forced is said to the end", going(minute(60), onRecord, worksAre(Absent), accessIs(Absent)),
			"DeadlineExceeded RemoveFinalizer forced final", "The add-on is removed. The deadline of the removal has passed."},

		{"a failed action is reported", going(failed(DeleteWorks)), "Removing DeleteWorks 9m0s",
			"The member is removing the objects. Retrying after an error: a webhook denied the request. The deadline is " +
				"2026-01-02T12:10:00Z."},
		{"until it is not to be done any more", going(failed(DeleteWorks), worksAre(Terminating)), "Removing 9m0s",
			"The member is removing the objects. The deadline is 2026-01-02T12:10:00Z."},
		{"so is a hook that cannot be run", going(failed(RunHooks), jobs(NotStarted, 0)), "PreDelete RunHooks 9m0s",
			"A pre-delete hook is running. Job x/bye: it says so. Retrying after an error: a webhook denied the request. " +
				"The deadline is 2026-01-02T12:10:00Z."},
		{"and what cannot be let go", going(minute(10), onRecord, on(Unreachable), failed(StripFinalizers)),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The deadline of the removal has passed. The remaining objects stay on the member. Retrying after an error: " +
				"a webhook denied the request."},
		{"an access that cannot be revoked has until the deadline", going(worksAre(Absent), failed(RevokeCredentials)),
			"Removing RevokeCredentials final 9m0s",
			"The access of the add-on agent to the hub is being revoked. Retrying after an error: a webhook denied the " +
				"request. The deadline is 2026-01-02T12:10:00Z."},
		{"and is retried forever: from then on it is a failure",
			going(minute(60), worksAre(Absent), failed(RevokeCredentials)), "RevokeFailed RevokeCredentials final 1ns",
			"The deadline of the removal has passed. The access of the add-on agent to the hub is being revoked. " +
				"Retrying after an error: a webhook denied the request. The MemberAddon stays until the access is revoked."},
		{"nor where nothing is waited for", going(forceNow, worksAre(Absent), failed(RevokeCredentials)),
			"RevokeFailed RevokeCredentials final 9m0s",
			"The removal is forced: the leave of the member was forced, or removalDeadlineSeconds is 0. The access " +
				"of the add-on agent to the hub is being revoked. Retrying after an error: a webhook denied the request. " +
				"The MemberAddon stays until the access is revoked."},
		{"nor where it was forced before", going(minute(10.5), onRecord, worksAre(Absent), failed(RevokeCredentials)),
			"DeadlineExceeded RevokeCredentials forced final 1ns",
			"The deadline of the removal has passed. The access of the add-on agent to the hub is being revoked. " +
				"Retrying after an error: a webhook denied the request."},

		{"a member that is gone runs no Job and takes nothing back", going(on(Gone), jobs(NotStarted, 0)),
			"DeadlineExceeded forced 1ns",
			"The member no longer exists. The member is removing the objects. The removal continues without waiting."},
		{"so the removal does not wait for it", going(on(Gone), jobs(NotStarted, 0), onRecord),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The member no longer exists. The remaining objects stay on the member."},
		{"but the function may have something to do", going(on(Gone), jobs(NotStarted, 0), function(NotStarted, 0)),
			"PreDelete AskFunc 9m0s", "The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"a member that is gone and has nothing needs no force", going(on(Gone), worksAre(Absent)),
			"Removing RevokeCredentials final 9m0s",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"a leave that was forced waits for nothing", going(forceNow, jobs(Running, 0)), "DeadlineExceeded forced 1ns",
			"The removal is forced: the leave of the member was forced, or removalDeadlineSeconds is 0. A pre-delete " +
				"hook is running. Job x/bye: it says so. The removal continues without waiting."},
		{"not for a member that can be reached either", going(forceNow, jobs(Running, 0), onRecord),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The removal is forced: the leave of the member was forced, or removalDeadlineSeconds is 0. The " +
				"remaining objects stay on the member."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			step := Next(test.observed)
			parts := []string{step.Reason}
			for _, action := range step.Actions {
				parts = append(parts, string(action))
			}
			if step.Forced {
				parts = append(parts, "forced")
			}
			if step.Final {
				parts = append(parts, "final")
			}
			if step.After != 0 {
				parts = append(parts, step.After.String())
			}
			require.Equal(t, test.want, strings.Join(parts, " "))
			require.Equal(t, test.message, step.Message)
			require.Equal(t,
				strings.HasPrefix(test.want, "HookFailed") || strings.HasPrefix(test.want, "RevokeFailed") ||
					strings.HasPrefix(test.want, "DeadlineExceeded"), step.Failed())
		})
	}
}

func TestMessageStaysShort(t *testing.T) {
	long := strings.Repeat("é\xff", 5000)
	step := Next(going(func(o *Observed) {
		o.Jobs, o.Func, o.Failed = Hook{State: NotStarted, Message: long}, Hook{State: Failed, Message: long},
			Attempt{RunHooks, long}
	}))
	require.LessOrEqual(t, len(step.Message), 1024)
	require.Contains(t, step.Message, "12:10:00Z", "however much the hooks say, and the API server")
}

func TestJobsOf(t *testing.T) {
	said := func(text string, changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: workv1alpha1.WorkStatus{ObservedGeneration: 2, Message: "It says so."}}
		for kind := range strings.FieldsSeq(text) {
			kind, status, _ := strings.Cut(kind, "=")
			w.Status.Conditions = append(w.Status.Conditions,
				metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: "So", ObservedGeneration: 2})
		}
		for _, change := range changes {
			change(w)
		}
		return w
	}
	for _, test := range []struct {
		reason string
		work   *workv1alpha1.Work
		want   Hook
	}{
		{"there is none", nil, Hook{State: NotStarted}},
		{"the member has not looked at it", said("", func(w *workv1alpha1.Work) { w.Generation = 3 }), Hook{State: Running}},
		{"what it said of one before is not about this one",
			said("Applied=True Available=True Complete=True", func(w *workv1alpha1.Work) { w.Generation = 3 }),
			Hook{State: Running}},
		{"a Job runs", said("Applied=True Available=False Complete=False"), Hook{State: Running, Message: "It says so."}},
		{"all have ended well", said("Applied=True Available=True Degraded=False Complete=True"),
			Hook{State: Succeeded, Message: "It says so."}},
		{"a Job is ready while it runs, which is not its end", said("Applied=True Available=True Complete=False"),
			Hook{State: Running, Message: "It says so."}},
		{"what was complete before this generation is not now",
			said("Applied=True Available=True Complete=True",
				func(w *workv1alpha1.Work) { w.Status.Conditions[2].ObservedGeneration = 1 }),
			Hook{State: Running, Message: "It says so."}},
		{"nothing in it ends: it is done when it is ready", said("Applied=True Available=True"),
			Hook{State: Succeeded, Message: "It says so."}},
		{"and not before", said("Applied=True Available=False"), Hook{State: Running, Message: "It says so."}},
		{"a Job has failed, or cannot be applied", said("Applied=True Available=False Degraded=True Complete=False"),
			Hook{State: Failed, Message: "It says so."}},
		{"it is being deleted, whatever it says",
			said("Degraded=True", func(w *workv1alpha1.Work) { w.DeletionTimestamp = new(metav1.NewTime(started)) }),
			Hook{State: Removing, Message: "It says so."}},
	} {
		require.Equal(t, test.want, JobsOf(test.work), test.reason)
	}
}

func BenchmarkNext(b *testing.B) {
	o := going(jobs(Running, 0))
	b.ReportAllocs()
	for b.Loop() {
		if Next(o).Reason == "" {
			b.Fatal("it is to go")
		}
	}
}
