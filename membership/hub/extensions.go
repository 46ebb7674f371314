package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/internal/panics"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// extensions calls the code of the product in decisions on members: the Acceptor and the gates.
type extensions struct {
	acceptor membership.Acceptor // nil: none
	asking   chan struct{}       // limits the workers that wait for the Acceptor
	gates    []membership.LeaveGate
	asked    gateResults
}

func newExtensions(options Options) *extensions {
	return &extensions{
		acceptor: options.Acceptor, asking: make(chan struct{}, max(1, options.Workers/2)), gates: options.Gates,
	}
}

// askAcceptor calls the Acceptor for a member whose agent the hub starts only after a decision. If the limit of
// concurrent calls is reached, the error is an ErrPending: a slow Acceptor must not delay the other members.
func (e *extensions) askAcceptor(ctx context.Context, o *memberObserved) error {
	if e.acceptor == nil || !o.lifecycle.AsksAcceptor() {
		return nil
	}
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	default:
		return membership.ErrPending
	}
	acceptance, err := ask(ctx, e.acceptor, requestFor(o.cluster))
	switch {
	case err == nil:
		o.lifecycle.Acceptor.Acceptance = acceptance
	case ctx.Err() != nil:
		return err // the hub ends, the Acceptor has not failed
	default:
		logf.FromContext(ctx).Error(err, "The Acceptor failed")
		o.lifecycle.Acceptor.Error = lifecycle.FormatMessage(err.Error())
	}
	return nil
}

// requestFor returns the JoinRequest with which the Acceptor decides on a MemberCluster. Unlike existing requests, it
// has no UID.
func requestFor(cluster *v1alpha1.MemberCluster) *v1alpha1.JoinRequest {
	return &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		Name: cluster.Name, MemberUID: cluster.UID, ClusterID: cluster.Spec.ClusterID, Labels: cluster.Labels,
	}}
}

// askGates calls the gates in order, up to the first that is not open.
func (e *extensions) askGates(ctx context.Context, member membership.Member) *lifecycle.GatesSeen {
	for _, gate := range e.gates {
		remaining, err := askGate(ctx, gate, member)
		if err != nil {
			remaining = append(remaining, err.Error())
		}
		if len(remaining) > 0 {
			return &lifecycle.GatesSeen{Waiting: gate.Name(), Remaining: remaining}
		}
	}
	return &lifecycle.GatesSeen{}
}

// gateTimeout is the timeout of a gate and of the Acceptor.
const gateTimeout = 15 * time.Second

func askGate(ctx context.Context, gate membership.LeaveGate, member membership.Member) (remaining []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("gate %s panicked: %v", gate.Name(), panicked)
		}
	}()
	return gate.Remaining(ctx, member)
}

// releaseNamespace makes all gates release the member's namespace, even if some of them fail.
func (e *extensions) releaseNamespace(ctx context.Context, member membership.Member) error {
	var errs []error
	for _, gate := range e.gates {
		releaser, ok := gate.(membership.Releaser)
		if !ok {
			continue
		}
		if err := guarded(ctx, func(ctx context.Context) error { return releaser.Release(ctx, member) }); err != nil {
			errs = append(errs, fmt.Errorf("release namespace %s from gate %s: %w", member.Namespace, gate.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// guarded calls code of a product with a timeout. It returns a panic as an error.
func guarded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	return panics.Recovered(func() error { return call(ctx) })
}

// forceGates forces all gates, even if some of them fail.
func (e *extensions) forceGates(ctx context.Context, member membership.Member) error {
	var errs []error
	for _, gate := range e.gates {
		forcer, ok := gate.(membership.Forcer)
		if !ok {
			continue
		}
		if err := guarded(ctx, func(ctx context.Context) error { return forcer.Force(ctx, member) }); err != nil {
			errs = append(errs, fmt.Errorf("force gate %s: %w", gate.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// gateResults stores the last result of the gates for each member, so that not every reconcile calls the gates. The
// zero value is ready for use.
type gateResults struct {
	mu      sync.Mutex
	answers map[string]gateAnswer
}

type gateAnswer struct {
	result lifecycle.GatesSeen
	at     time.Time
	// Identify the result: it is not used for another MemberCluster of the same name, or another generation.
	uid        types.UID
	generation int64
}

func (a *gateResults) set(cluster *v1alpha1.MemberCluster, said lifecycle.GatesSeen, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers == nil {
		a.answers = map[string]gateAnswer{}
	}
	a.answers[cluster.Name] = gateAnswer{result: said, at: at, uid: cluster.UID, generation: cluster.Generation}
}

// get returns the stored result and its age; nil: none, or the clock was set back.
func (a *gateResults) get(cluster *v1alpha1.MemberCluster, now time.Time) *lifecycle.GatesSeen {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.answers[cluster.Name]
	if !ok || answer.uid != cluster.UID || answer.generation != cluster.Generation || now.Before(answer.at) {
		return nil
	}
	said := answer.result
	said.Age = max(now.Sub(answer.at), time.Nanosecond)
	return &said
}

func (a *gateResults) forget(member string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.answers, member)
}
