package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// removing is the state of a removal between reconciles.
type removing struct {
	requestedSince time.Time // since when the deletion of the MemberAddon has been observed as a request
	confirmed      bool      // the request is confirmed

	function    removal.Hook    // the last answer of the agent
	failedSince time.Time       // since when the hooks on the member are observed as failed
	attempt     removal.Attempt // the last attempt, if it failed
}

// preDelete describes the hooks that run before an add-on is removed.
type preDelete struct {
	sites []site // the sites with hooks
	input *Input
	err   error // why the hooks are unknown
}

// remove removes the add-on from the member, one step with each reconcile.
func (l *memberReconciliation) remove(ctx context.Context) (after time.Duration, err error) {
	if !controllerutil.ContainsFinalizer(l.object, v1alpha1.MemberAddonFinalizer) {
		return 0, l.reportKept(ctx)
	}
	switch is, wait, err := l.removalRequested(ctx); {
	case err != nil || wait > 0:
		return wait, err
	case !is:
		return 0, l.keepWorks(ctx)
	}
	p, err := l.preDelete(ctx)
	if err != nil {
		return 0, err
	}
	if l.waitsForCalls() {
		return l.result.after, nil
	}
	if l.registrar != nil {
		if l.access.present, err = l.registrar.Present(ctx, l.key.Name, l.key.Namespace); err != nil {
			return 0, fmt.Errorf("check the access of the agent: %w", err)
		}
	}
	o, err := l.leaving(ctx, p)
	if err != nil {
		return 0, err
	}
	step := removal.Next(o)
	if step.Final { // objects that the caches do not contain yet must not remain
		if err := l.observeLive(ctx); err != nil {
			return 0, err
		}
		if !controllerutil.ContainsFinalizer(l.object, v1alpha1.MemberAddonFinalizer) {
			return 0, l.reportKept(ctx) // The cache does not show yet that the finalizer is removed.
		}
		if o, err = l.leaving(ctx, p); err != nil {
			return 0, err
		}
		step = removal.Next(o)
	}
	// If RemoveFinalizer is the only action, the object is deleted immediately, so its status is not written.
	if !slices.Equal(step.Actions, []removal.Action{removal.RemoveFinalizer}) {
		if err := l.reportRemoval(ctx, &step); err != nil {
			return 0, err
		}
	}
	for _, action := range step.Actions {
		if err := l.execute(ctx, action, p); err != nil {
			return 0, l.reportFailed(ctx, &o, action, err)
		}
	}
	if len(step.Actions) > 0 {
		l.attempt = removal.Attempt{}
	}
	if slices.Contains(step.Actions, removal.AskFunc) && !l.result.busy {
		return time.Nanosecond, nil // no event reports the answer
	}
	l.requeueAfter(step.After)
	return l.result.after, nil
}

// reportFailed reports an action that failed and is retried. Conflicts are not failures.
func (l *memberReconciliation) reportFailed(ctx context.Context, o *removal.Observed, action removal.Action,
	err error) error {
	failed := fmt.Errorf("%s: %w", action, err)
	if onlyConflicts(failed) || ctx.Err() != nil {
		return failed
	}
	l.attempt = removal.Attempt{Action: action, Error: err.Error()}
	o.Failed = l.attempt
	step := removal.Next(*o)
	return errors.Join(failed, l.reportRemoval(ctx, &step))
}

// leaving returns the observed state of the removal.
func (l *memberReconciliation) leaving(ctx context.Context, p *preDelete) (removal.Observed, error) {
	o := removal.Observed{
		Now: l.now, Started: l.object.DeletionTimestamp.Time, Finalizer: controllerutil.ContainsFinalizer(l.object,
			v1alpha1.MemberAddonFinalizer),
		Forced: isForced(l.object.Status.Conditions), Works: presence(l.observed.works), Credentials: l.access.present,
		Failed: l.attempt,
	}
	switch seconds := l.object.Spec.RemovalDeadlineSeconds; {
	case seconds != nil && *seconds == 0:
		o.ForceNow = true
	case seconds != nil:
		o.Deadline = time.Duration(*seconds) * time.Second
	case l.observed.addon != nil:
		o.Deadline = time.Duration(l.observed.addon.Spec.Removal.DeadlineSeconds) * time.Second
	}
	awaited, hosting, err := l.waitedFor(ctx)
	if err != nil {
		return o, err
	}
	o.Member, o.Hosting = reach(awaited), hosting
	if l.observed.member != nil && l.observed.member.Status.Leave != nil && l.observed.member.Status.Leave.Forced {
		o.ForceNow = true
	}
	if o.Jobs, err = l.jobs(ctx, p); err != nil {
		return o, err
	}
	if _, asks := l.agents[l.key.Name].(PreDeleter); asks && p.input != nil {
		if o.Func = l.function; o.Func.State == removal.NoHook {
			o.Func.State = removal.NotStarted
		}
	}
	return o, nil
}

func reach(m *membershipv1alpha1.MemberCluster) removal.Member {
	switch {
	case m == nil:
		return removal.Gone
	case healthy(m):
		return removal.Reachable
	}
	return removal.Unreachable
}

// jobs returns the state of the hooks on the member and on its hosting member.
func (l *memberReconciliation) jobs(ctx context.Context, p *preDelete) (removal.Hook, error) {
	var all []removal.Hook
	for _, r := range l.observed.hooks {
		hook := r.jobs
		if host, err := l.memberIn(ctx, r.Namespace); err != nil {
			return hook, err
		} else if host == nil && r.hosted() && hook.State != removal.Removing {
			hook.State = removal.Succeeded // no agent can run the hooks any more
		}
		all = append(all, hook)
	}
	if p.err != nil && len(l.observed.hooks) == 0 {
		all = append(all, removal.Hook{State: removal.Failed, Message: fmt.Sprintf("The hooks of the add-on are unknown: %s",
			p.err)})
	}
	for _, s := range p.sites {
		if l.missesHookWork(s) {
			all = append(all, removal.Hook{State: removal.NotStarted})
		}
	}
	jobs := removal.All(all...)
	if jobs.State != removal.Failed {
		l.failedSince = time.Time{}
	} else if l.failedSince.IsZero() {
		l.failedSince = l.now
	}
	jobs.Since = l.failedSince
	return jobs, nil
}

// missesHookWork reports whether a site has hooks without a Work.
func (l *memberReconciliation) missesHookWork(s site) bool {
	return len(s.part.hooks) > 0 && !slices.ContainsFunc(l.observed.hooks, func(r *record) bool {
		return r.Namespace == s.namespace
	})
}

// recorded reports whether the Addon has recorded this forced removal, because nothing else does so later. It does not
// wait for an Addon that is not reconciled.
func (l *memberReconciliation) recorded() bool {
	degraded := meta.FindStatusCondition(l.object.Status.Conditions, v1alpha1.ConditionDegraded)
	if l.observed.addon == nil || !isForced(l.object.Status.Conditions) ||
		l.now.Sub(degraded.LastTransitionTime.Time) > pollInterval {
		return true
	}
	return slices.ContainsFunc(l.observed.addon.Status.ForcedRemovals, func(f v1alpha1.ForcedRemoval) bool {
		return f.Member == l.name() && !f.Time.Before(l.object.DeletionTimestamp)
	})
}

func isForced(conditions []metav1.Condition) bool {
	degraded := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
	return degraded != nil && degraded.Status == metav1.ConditionTrue && degraded.Reason == v1alpha1.ReasonDeadlineExceeded
}

func presence(works []*record) removal.Presence {
	is := removal.Absent
	for _, r := range works {
		if r.DeletionTimestamp == nil {
			return removal.Present
		}
		is = removal.Terminating
	}
	return is
}

// preDelete returns the hooks that run before the add-on is removed. It does not render the manifests if the member
// has nothing of the add-on, or if it is known that there are no hooks.
func (l *memberReconciliation) preDelete(ctx context.Context) (*preDelete, error) {
	p := &preDelete{}
	if err := l.locateExisting(ctx); err != nil {
		return nil, err
	}
	if l.observed.addon == nil {
		return p, nil
	}
	of := contentOf{member: l.object, installNamespace: l.object.Spec.InstallNamespace}
	for i := range l.observed.addon.Spec.Install.Placements {
		if at := &l.observed.addon.Spec.Install.Placements[i]; at.Namespace+"/"+at.Name == l.object.Status.Placement {
			of.placement = at.Configs
		}
	}
	found, err := l.contents(ctx, l.key, l.observed.addon, of)
	if err != nil {
		return nil, err
	}
	l.desired.content = &found[0]
	l.await(l.desired.content)
	p.input = l.input()
	if l.observed.member == nil || presence(l.observed.works) != removal.Present {
		return p, nil
	}
	if len(l.desired.content.problems) > 0 {
		p.err = errors.New(l.desired.content.problems[0].Message)
	} else if made, err := l.manifests(ctx, p.input, l.desired.content); err != nil {
		p.err, l.result.busy = err, l.result.busy || errors.Is(err, calls.ErrBusy)
	} else {
		p.sites = l.sites(made)
	}
	if !slices.ContainsFunc(l.observed.works, func(r *record) bool { return r.parts }) {
		p.err = nil
	}
	return p, nil
}

// observeLive reads the MemberAddon and its Works from the API server.
func (l *memberReconciliation) observeLive(ctx context.Context) error {
	object := &v1alpha1.MemberAddon{}
	if err := l.live.Get(ctx, l.key, object); apierrors.IsNotFound(err) {
		return errRetry // it is deleted, and the cache will observe that soon
	} else if err != nil {
		return wrap(err, "read MemberAddon", l.object)
	}
	if object.UID != l.object.UID {
		return errRetry
	}
	l.object = object
	return l.listLive(ctx)
}

// kept is the beginning of the message about finalizers of other clients.
const kept = "The add-on is removed. Finalizers of other clients keep the MemberAddon: "

// reportKept reports which clients keep the MemberAddon of a removed add-on. The status of the Addon is computed from
// these messages, also after a restart.
func (l *memberReconciliation) reportKept(ctx context.Context) error {
	if len(l.object.Finalizers) == 0 {
		return nil // it is deleted
	}
	step := removal.Step{Reason: v1alpha1.ReasonRemoving, Message: kept + strings.Join(l.object.Finalizers, ", ") + "."}
	if conditions := l.object.Status.Conditions; isForced(conditions) { // the message keeps the reason
		why, _, _ := strings.Cut(meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded).Message, kept)
		step.Reason, step.Message = v1alpha1.ReasonDeadlineExceeded, messages.Join(strings.TrimSpace(why), step.Message)
	}
	return l.reportRemoval(ctx, &step)
}

// reportRemoval reports the progress of the removal. A forced removal is recorded before it begins.
func (l *memberReconciliation) reportRemoval(ctx context.Context, step *removal.Step) error {
	status := &l.object.Status
	l.result.status = *status.DeepCopy()
	l.result.status.ObservedGeneration = l.object.Generation
	l.result.health = health.Observed{
		Generation: l.object.Generation, Before: status.Conditions, Now: l.now, Reachable: l.observed.member != nil &&
			healthy(l.observed.member),
		Desired: status.DesiredRevision, Revision: l.assigned.revision, Since: l.assigned.since, Current: true,
		Removal: &health.Removal{Reason: step.Reason, Message: step.Message, Failed: step.Failed()},
	}
	if l.observed.addon != nil {
		l.result.health.Check = l.observed.addon.Spec.Health
	}
	for _, r := range l.observed.works {
		l.result.health.Works = append(l.result.health.Works, r.health)
	}
	return l.report(ctx)
}
