package removal

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// removing returns an add-on whose removal from a reachable member has lasted one of its ten minutes.
func removing(changes ...func(*Observed)) Observed {
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
	return func(o *Observed) { o.Jobs = Hook{state, o.Now.Add(-ago), "Job x/bye: status message"} }
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
func forced(o *Observed)   { o.Forced = true }
func forceNow(o *Observed) { o.ForceNow = true }

func TestNext(t *testing.T) {
	for _, test := range []struct {
		reason   string
		observed Observed
		want     string // the reason, actions, recorded or final, and the next reconcile
		message  string
	}{
		{"no removal is requested", Observed{Finalizer: true, Works: Present}, "", ""},
		{"the finalizer is removed", removing(func(o *Observed) { o.Finalizer = false }), "", ""},
		{"an add-on without hooks: the Works are deleted",
			removing(), "Removing DeleteWorks 9m0s", "The member is removing the objects. " +
				"The deadline is 2026-01-02T12:10:00Z."},
		{"the default deadline is 15 minutes", removing(func(o *Observed) { o.Deadline = 0 }),
			"Removing DeleteWorks 14m0s", "The member is removing the objects. The deadline is 2026-01-02T12:15:00Z."},
		{"Jobs and the function are started first",
			removing(jobs(NotStarted, 0), function(NotStarted, 0)), "PreDelete RunHooks AskFunc 9m0s",
			"A pre-delete hook is running. Job x/bye: status message. The add-on prepares its removal. 42 left. The deadline " +
				"is 2026-01-02T12:10:00Z."},
		{"a running Job is waited for", removing(jobs(Running, 0), function(Succeeded, 0)), "PreDelete 9m0s",
			"A pre-delete hook is running. Job x/bye: status message. The deadline is 2026-01-02T12:10:00Z."},
		{"a running Job on an unreachable member is waited for",
			removing(jobs(Running, 0), on(Unreachable)), "PreDelete 9m0s",
			"A pre-delete hook is running. Job x/bye: status message. The member cannot be reached. The deadline is " +
				"2026-01-02T12:10:00Z."},
		{"a failed Job is not retried at once", removing(jobs(Failed, time.Second)), "HookFailed 9s",
			"A pre-delete hook has failed and is retried. Job x/bye: status message. The deadline is 2026-01-02T12:10:00Z."},
		{"a failed Job is deleted after a pause",
			removing(jobs(Failed, RetryPause)), "HookFailed DeleteHooks 9m0s", "A pre-delete hook has failed " +
				"and is retried. Job x/bye: status message. The deadline is 2026-01-02T12:10:00Z."},
		{"a Job that is being deleted is waited for", removing(jobs(Removing, 0)), "PreDelete 9m0s", "A pre-delete hook is " +
			"running. Job x/bye: status message. The deadline is 2026-01-02T12:10:00Z."},
		{"a function that is not done is not called again at once", removing(function(Running, time.Second)), "PreDelete 4s",
			"The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"a function that is not done is called again after a pause",
			removing(function(Running, AskPause)), "PreDelete AskFunc 9m0s", "The add-on prepares its " +
				"removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"a failed function is called again after a longer pause", removing(function(Failed, AskPause)), "HookFailed 5s",
			"The preparation of the removal has failed and is retried. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"the next reconcile is not later than the deadline", removing(minute(9.99), function(Running, 0)), "PreDelete 600ms",
			"The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"the Works are deleted after the hooks, and the Work of the hooks is kept",
			removing(jobs(Succeeded, 0), function(Succeeded, 0)),
			"Removing DeleteWorks 9m0s", "The member is removing the objects. The deadline is 2026-01-02T12:10:00Z."},
		{"Works that are being deleted on an unreachable member",
			removing(worksAre(Terminating), on(Unreachable)), "Removing 9m0s",
			"The member is removing the objects. The member cannot be reached. The deadline is 2026-01-02T12:10:00Z."},
		{"an unreachable hosting member is named", removing(worksAre(Terminating), on(Unreachable), hostedOn("west")),
			"Removing 9m0s",
			"The member is removing the objects. Member west, which hosts the add-on agent, cannot be reached. The " +
				"deadline is 2026-01-02T12:10:00Z."},
		{"a hosting member that no longer exists is named", removing(worksAre(Terminating), on(Gone), hostedOn("west")),
			"DeadlineExceeded forced 1ns",
			"Member west, which hosts the add-on agent, no longer exists. The member is removing the objects. The removal " +
				"continues without waiting."},
		{"hooks do not run while Works are being deleted",
			removing(worksAre(Terminating), jobs(NotStarted, 0), function(NotStarted, 0)), "Removing 9m0s",
			"The member is removing the objects. The deadline is 2026-01-02T12:10:00Z."},
		{"the Work of the hooks is deleted after the Works",
			removing(worksAre(Absent), jobs(Succeeded, 0)), "Removing DeleteHooks 9m0s",
			"The member is removing the objects of the hooks. The deadline is 2026-01-02T12:10:00Z."},
		{"the deletion of the Work of the hooks is waited for",
			removing(worksAre(Absent), jobs(Removing, 0)), "Removing 9m0s",
			"The member is removing the objects of the hooks. The deadline is 2026-01-02T12:10:00Z."},
		{"the credentials are revoked after the Works", removing(worksAre(Absent)), "Removing RevokeCredentials final 9m0s",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"the deletion of the credentials is waited for", removing(worksAre(Absent), accessIs(Terminating)), "Removing 9m0s",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"the finalizer is removed at the end",
			removing(worksAre(Absent), accessIs(Absent)), "Removing RemoveFinalizer final",
			"The add-on is removed."},
		{"an add-on without Works runs the function and no Jobs",
			removing(worksAre(Absent), accessIs(Absent), jobs(NotStarted, 0), function(NotStarted, 0)), "PreDelete AskFunc 9m0s",
			"The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},

		{"the deadline passes while a hook is retried: the force is recorded", removing(minute(10), jobs(Failed, 0)),
			"DeadlineExceeded forced 1ns",
			"The deadline of the removal has passed. A pre-delete hook has failed and is retried. Job x/bye: status " +
				"message. The removal continues without waiting."},
		{"after the record, the Works are deleted within a grace period", removing(minute(10), jobs(Failed, 0), forced),
			"DeadlineExceeded DeleteWorks forced 1m0s",
			"The deadline of the removal has passed. The member has until 2026-01-02T12:11:00Z to remove the objects; " +
				"the remaining objects then stay on the member."},
		{"the member has removed the objects within the grace period",
			removing(minute(10.5), jobs(Failed, 0), forced, worksAre(Absent)),
			"DeadlineExceeded DeleteHooks forced 30s",
			"The deadline of the removal has passed. The member has until 2026-01-02T12:11:00Z to remove the objects; " +
				"the remaining objects then stay on the member."},
		{"the credentials are revoked within the grace period", removing(minute(10.5), forced, worksAre(Absent)),
			"DeadlineExceeded RevokeCredentials forced final 1ns",
			"The deadline of the removal has passed. The access of the add-on agent to the hub is being revoked."},
		{"the grace period has passed: finalizers are stripped",
			removing(minute(11), forced, worksAre(Terminating)), "DeadlineExceeded StripFinalizers " +
				"RevokeCredentials RemoveFinalizer forced final", "The deadline of the removal has passed. The remaining " +
				"objects stay on the member."},
		{"an unreachable member has no grace period", removing(minute(10), forced, on(Unreachable), worksAre(Terminating)),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The deadline of the removal has passed. The remaining objects stay on the member."},
		{"finalizers of others do not block the removal",
			removing(minute(10), forced, worksAre(Absent), accessIs(Terminating)),
			"DeadlineExceeded StripFinalizers RemoveFinalizer forced final",
			"The deadline of the removal has passed. The remaining objects stay on the member."},
		{"the revocation of credentials is not forced after the deadline", removing(minute(60), worksAre(Absent)),
			"Removing RevokeCredentials final 1ns",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"the end of the removal is not forced after the deadline",
			removing(minute(60), worksAre(Absent), accessIs(Absent)), "Removing RemoveFinalizer final",
			"The add-on is removed."},
		{"a forced removal is reported until its end", removing(minute(60), forced, worksAre(Absent), accessIs(Absent)),
			"DeadlineExceeded RemoveFinalizer forced final", "The add-on is removed. The deadline of the removal has passed."},

		{"a failed action is reported", removing(failed(DeleteWorks)), "Removing DeleteWorks 9m0s",
			"The member is removing the objects. Retrying after an error: a webhook denied the request. The deadline is " +
				"2026-01-02T12:10:00Z."},
		{"the error of an action that is done is not reported",
			removing(failed(DeleteWorks), worksAre(Terminating)), "Removing 9m0s",
			"The member is removing the objects. The deadline is 2026-01-02T12:10:00Z."},
		{"a failed start of a hook is reported", removing(failed(RunHooks), jobs(NotStarted, 0)), "PreDelete RunHooks 9m0s",
			"A pre-delete hook is running. Job x/bye: status message. Retrying after an error: a webhook denied the request. " +
				"The deadline is 2026-01-02T12:10:00Z."},
		{"a failed removal of finalizers is reported", removing(minute(10), forced, on(Unreachable), failed(StripFinalizers)),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The deadline of the removal has passed. The remaining objects stay on the member. Retrying after an error: " +
				"a webhook denied the request."},
		{"a failed revocation before the deadline", removing(worksAre(Absent), failed(RevokeCredentials)),
			"Removing RevokeCredentials final 9m0s",
			"The access of the add-on agent to the hub is being revoked. Retrying after an error: a webhook denied the " +
				"request. The deadline is 2026-01-02T12:10:00Z."},
		{"a failed revocation after the deadline is a failure and is retried",
			removing(minute(60), worksAre(Absent), failed(RevokeCredentials)), "RevokeFailed RevokeCredentials final 1ns",
			"The deadline of the removal has passed. The access of the add-on agent to the hub is being revoked. " +
				"Retrying after an error: a webhook denied the request. The MemberAddon stays until the access is revoked."},
		{"a failed revocation of a forced leave is a failure and is retried",
			removing(forceNow, worksAre(Absent), failed(RevokeCredentials)),
			"RevokeFailed RevokeCredentials final 9m0s",
			"The removal is forced: the leave of the member was forced, or removalDeadlineSeconds is 0. The access " +
				"of the add-on agent to the hub is being revoked. Retrying after an error: a webhook denied the request. " +
				"The MemberAddon stays until the access is revoked."},
		{"a failed revocation after the removal was forced",
			removing(minute(10.5), forced, worksAre(Absent), failed(RevokeCredentials)),
			"DeadlineExceeded RevokeCredentials forced final 1ns",
			"The deadline of the removal has passed. The access of the add-on agent to the hub is being revoked. " +
				"Retrying after an error: a webhook denied the request."},

		{"a member that no longer exists: the force is recorded", removing(on(Gone), jobs(NotStarted, 0)),
			"DeadlineExceeded forced 1ns",
			"The member no longer exists. The member is removing the objects. The removal continues without waiting."},
		{"a member that no longer exists: finalizers are stripped", removing(on(Gone), jobs(NotStarted, 0), forced),
			"DeadlineExceeded StripFinalizers RevokeCredentials RemoveFinalizer forced final",
			"The member no longer exists. The remaining objects stay on the member."},
		{"the function is called for a member that no longer exists",
			removing(on(Gone), jobs(NotStarted, 0), function(NotStarted, 0)),
			"PreDelete AskFunc 9m0s", "The add-on prepares its removal. 42 left. The deadline is 2026-01-02T12:10:00Z."},
		{"a member that no longer exists and has no Works is not forced", removing(on(Gone), worksAre(Absent)),
			"Removing RevokeCredentials final 9m0s",
			"The access of the add-on agent to the hub is being revoked. The deadline is 2026-01-02T12:10:00Z."},
		{"a forced leave: the force is recorded", removing(forceNow, jobs(Running, 0)), "DeadlineExceeded forced 1ns",
			"The removal is forced: the leave of the member was forced, or removalDeadlineSeconds is 0. A pre-delete " +
				"hook is running. Job x/bye: status message. The removal continues without waiting."},
		{"a forced leave does not wait for a reachable member", removing(forceNow, jobs(Running, 0), forced),
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

func TestNext_MessageIsBounded(t *testing.T) {
	long := strings.Repeat("é\xff", 5000)
	step := Next(removing(func(o *Observed) {
		o.Jobs, o.Func, o.Failed = Hook{State: NotStarted, Message: long}, Hook{State: Failed, Message: long},
			Attempt{RunHooks, long}
	}))
	require.LessOrEqual(t, len(step.Message), 1024)
	require.Contains(t, step.Message, "12:10:00Z", "want the deadline in a message with long parts")
}

func TestJobsOf(t *testing.T) {
	workWith := func(text string, changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: workv1alpha1.WorkStatus{ObservedGeneration: 2, Message: "Status message."}}
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
		{"no Work", nil, Hook{State: NotStarted}},
		{"the status describes an earlier generation",
			workWith("", func(w *workv1alpha1.Work) { w.Generation = 3 }), Hook{State: Running}},
		{"the conditions describe an earlier generation",
			workWith("Applied=True Available=True Complete=True", func(w *workv1alpha1.Work) { w.Generation = 3 }),
			Hook{State: Running}},
		{"a Job runs",
			workWith("Applied=True Available=False Complete=False"), Hook{State: Running, Message: "Status message."}},
		{"all Jobs have succeeded", workWith("Applied=True Available=True Degraded=False Complete=True"),
			Hook{State: Succeeded, Message: "Status message."}},
		{"a running Job is available and not complete", workWith("Applied=True Available=True Complete=False"),
			Hook{State: Running, Message: "Status message."}},
		{"the condition Complete describes an earlier generation",
			workWith("Applied=True Available=True Complete=True",
				func(w *workv1alpha1.Work) { w.Status.Conditions[2].ObservedGeneration = 1 }),
			Hook{State: Running, Message: "Status message."}},
		{"a Work without Jobs succeeds when available", workWith("Applied=True Available=True"),
			Hook{State: Succeeded, Message: "Status message."}},
		{"a Work without Jobs runs until available",
			workWith("Applied=True Available=False"), Hook{State: Running, Message: "Status message."}},
		{"a degraded Work has failed", workWith("Applied=True Available=False Degraded=True Complete=False"),
			Hook{State: Failed, Message: "Status message."}},
		{"the Work is being deleted",
			workWith("Degraded=True", func(w *workv1alpha1.Work) { w.DeletionTimestamp = new(metav1.NewTime(started)) }),
			Hook{State: Removing, Message: "Status message."}},
	} {
		require.Equal(t, test.want, JobsOf(test.work), test.reason)
	}
}

func BenchmarkNext(b *testing.B) {
	o := removing(jobs(Running, 0))
	b.ReportAllocs()
	for b.Loop() {
		if Next(o).Reason == "" {
			b.Fatal("want a step of the removal")
		}
	}
}
