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
	made, err := l.manifests(ctx, l.input(), l.content)
	switch {
	case errors.Is(err, calls.ErrBusy):
		l.busy = true
		l.observed.Problems = append(l.observed.Problems, health.Problem{Reason: v1alpha1.ReasonManifestsFailed,
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
	if l.credential != nil {
		more, err := bundled([]*unstructured.Unstructured{l.credential})
		if err != nil {
			l.failed = err
			return
		}
		to := &made.part
		if l.hosting != nil { // the cluster of the agent
			to = &made.hosting
		}
		to.objects = append(to.objects, more...)
	}
	next := l.assigned
	if next.revision != l.content.revision {
		next = assignment{l.content.revision, l.now.UTC().Truncate(time.Microsecond)} // with the precision of the status
	}
	current, err := l.distributeAll(ctx, made, next)
	l.observed.Current = current
	if errors.Is(err, errForeign) {
		l.problem(v1alpha1.ReasonManifestsFailed, err.Error())
		l.requeueAfter(pollInterval) // no event reports its deletion
		return
	}
	if err != nil {
		l.failed = err
		if !onlyConflicts(err) {
			l.observed.Problems = append(l.observed.Problems, health.Problem{Reason: v1alpha1.ReasonManifestsFailed,
				Message: err.Error(), Retried: !persistent(err)})
		}
		return
	}
	if current || !l.moves() {
		l.status.Hosting = l.hosting
	}
	l.assigned = next
	for i := range l.status.Configs {
		l.status.Configs[i].AppliedHash = l.status.Configs[i].DesiredHash
	}
	l.status.AppliedRevision, l.status.RevisionSince = next.revision, new(metav1.NewMicroTime(next.since))
}

// patience is the interval for checking a state whose change triggers no event.
const pollInterval = 15 * time.Second

// persistent reports whether an error of a write needs an action of a user.
func persistent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func (l *memberReconciliation) input() *Input {
	return &Input{
		Addon: l.addon, MemberAddon: l.object, Member: l.member,
		InstallNamespace: l.content.installNamespace, Hosting: l.hosting.DeepCopy(), Settings: l.content.settings,
		Configs: slices.Clone(l.content.objects),
	}
}

// ask calls the HealthChecker of the agent.
func (l *memberReconciliation) ask(ctx context.Context) {
	if l.addon.Spec.Health.Type != v1alpha1.HealthCustom {
		return
	}
	checker, is := l.agents[l.key.Name].(HealthChecker)
	if !is {
		l.observed.Answer = health.Answer{Health: "Failed",
			Message: "The Addon's health is of type Custom, and its agent has no function for it: choose another type."}
		return
	}
	in, works := l.input(), slices.Clone(l.observed.Works)
	answer, err := calls.Do(ctx, l.calls, callOf(l.key, l.key.Name, "Health"),
		func(ctx context.Context) (health.Answer, error) {
			return checker.Health(ctx, *in, works)
		})
	l.busy = l.busy || errors.Is(err, calls.ErrBusy)
	if err != nil {
		answer = health.Answer{Message: fmt.Sprintf("Its health cannot be told: %s.", err)}
	}
	l.observed.Answer = answer
	l.requeueAfter(HealthPeriod)
}
