package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// act delivers the desired revision to the member.
func (l *memberReconciliation) act(ctx context.Context) {
	made, err := l.manifests(ctx, l.input(), l.desired.content)
	switch {
	case errors.Is(err, calls.ErrBusy):
		l.result.busy = true
		l.result.health.Problems = append(l.result.health.Problems, health.Problem{Reason: v1alpha1.ReasonManifestsFailed,
			Message: err.Error(), Retried: true})
		return
	case errors.Is(err, errNoAgent):
		l.problem(v1alpha1.ReasonNoAgent, err.Error())
		l.requeueAfter(pollInterval)
		return
	case err != nil:
		l.problem(v1alpha1.ReasonManifestsFailed, err.Error())
		l.requeueAfter(pollInterval)
		return
	}
	if !l.register(ctx, made.registration) {
		return
	}
	if l.access.manifest != nil {
		more, err := toBundleObjects([]*unstructured.Unstructured{l.access.manifest})
		if err != nil {
			l.result.failed = err
			return
		}
		to := &made.part
		if l.desired.hosting != nil { // the credential belongs to the cluster of the agent
			to = &made.hosting
		}
		to.objects = append(to.objects, more...)
	}
	next := l.assigned
	if next.revision != l.desired.content.revision {
		// The status has microsecond precision.
		next = assignment{l.desired.content.revision, l.now.UTC().Truncate(time.Microsecond)}
	}
	current, err := l.distributeAll(ctx, made, next)
	l.result.health.Current = current
	if errors.Is(err, errNotOwned) {
		l.problem(v1alpha1.ReasonManifestsFailed, err.Error())
		l.requeueAfter(pollInterval) // no event reports its deletion
		return
	}
	if err != nil {
		l.result.failed = err
		if !onlyConflicts(err) {
			l.result.health.Problems = append(l.result.health.Problems, health.Problem{Reason: v1alpha1.ReasonManifestsFailed,
				Message: err.Error(), Retried: !persistent(err)})
		}
		return
	}
	if current || !l.moves() {
		l.result.status.Hosting = l.desired.hosting
	}
	l.assigned = next
	for i := range l.result.status.Configs {
		l.result.status.Configs[i].AppliedHash = l.result.status.Configs[i].DesiredHash
	}
	l.result.status.AppliedRevision, l.result.status.RevisionSince = next.revision, new(metav1.NewMicroTime(next.since))
}

// pollInterval is the interval for checking a state whose change triggers no event.
const pollInterval = 15 * time.Second

// persistent reports whether an error of a write needs an action of a user.
func persistent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func (l *memberReconciliation) input() *Input {
	return &Input{
		Addon: l.observed.addon, MemberAddon: l.object, Member: l.observed.member,
		InstallNamespace: l.desired.content.installNamespace, Hosting: l.desired.hosting.DeepCopy(),
		Settings: l.desired.content.settings,
		Configs:  slices.Clone(l.desired.content.objects),
	}
}

// checkHealth calls the HealthChecker of the agent.
func (l *memberReconciliation) checkHealth(ctx context.Context) {
	if l.observed.addon.Spec.Health.Type != v1alpha1.HealthCustom {
		return
	}
	checker, is := l.agents[l.key.Name].(HealthChecker)
	if !is {
		l.result.health.Answer = health.Answer{Health: "Failed",
			Message: "spec.health.type of the Addon is Custom, but the agent does not implement HealthChecker: choose " +
				"another type."}
		return
	}
	in, works := l.input(), slices.Clone(l.result.health.Works)
	answer, err := calls.Do(ctx, l.calls, callOf(l.key, l.key.Name, "Health"),
		func(ctx context.Context) (health.Answer, error) {
			return checker.Health(ctx, *in, works)
		})
	l.result.busy = l.result.busy || errors.Is(err, calls.ErrBusy)
	if err != nil {
		answer = health.Answer{Message: fmt.Sprintf("The health of the add-on cannot be determined: %s.", err)}
	}
	l.result.health.Answer = answer
	l.requeueAfter(HealthPeriod)
}
