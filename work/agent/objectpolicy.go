package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// ObjectPolicy decides which objects of Works the member accepts. HubPolicy of package tenancy/memberpolicy
// implements it.
type ObjectPolicy interface {
	// Rules returns the rules in force for a Work: a function that returns why the member does not accept an object, as a
	// sentence for the status of the Work, or an empty string if it does. The function must be pure: for the same version
	// it returns the same answers. An error means that the rules are not known. The agent then applies nothing and tries
	// again. It reports a Forbidden error of an API server in the status of the Work, and logs others.
	//
	// The agent calls Rules for each reconcile of a Work, from several workers concurrently.
	Rules(ctx context.Context,
		work *v1alpha1.Work) (reject func(v1alpha1.ResourceIdentifier) string, version string, err error)
	// Changed returns a channel that is closed at the next change of the rules. The agent then reconciles all Works.
	Changed() <-chan struct{}
}

// rules are the rules of the ObjectPolicy for one Work.
type rules struct {
	reject  func(v1alpha1.ResourceIdentifier) string // nil: the member accepts everything
	version string
}

func (a *Agent) rulesFor(ctx context.Context, work *v1alpha1.Work) (r rules, err error) {
	if a.options.ObjectPolicy != nil {
		r.reject, r.version, err = a.options.ObjectPolicy.Rules(ctx, work)
	}
	return r, err
}

// followPolicy reconciles all Works after each change of the ObjectPolicy.
func (a *Agent) followPolicy(ctx context.Context) {
	for {
		changed := a.options.ObjectPolicy.Changed()
		a.enqueueAll()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// enqueueAll enqueues all Works that the agent has reconciled before.
func (a *Agent) enqueueAll() {
	a.mu.Lock()
	works := slices.Collect(maps.Keys(a.states))
	a.mu.Unlock()
	for _, work := range works {
		a.enqueueAfter(work, batchDelay)
	}
}

// accept removes the objects that the member does not accept from the objects of the plan.
func (p *plan) accept(reject func(v1alpha1.ResourceIdentifier) string) {
	if reject == nil {
		return
	}
	for i := range p.manifests {
		m := &p.manifests[i]
		if m.object < 0 {
			continue
		}
		message, reason := reject(m.id), v1alpha1.ReasonNotAccepted
		if message == "" && !m.scoped && m.id.Namespace != "" {
			// The member may serve the kind as cluster-scoped by the time the object is applied.
			unscoped := m.id
			if unscoped.Namespace = ""; reject(unscoped) != "" {
				message = fmt.Sprintf("The member does not serve kind %s, so the rules of the member cannot be evaluated for "+
					"the object.", m.id.Kind)
				reason, p.unscoped = v1alpha1.ReasonUnknownKind, true
			}
		}
		if message != "" {
			m.refused, m.reason = message, reason
			p.drop(m)
		}
	}
}

// drop removes the object of a manifest from the objects of the plan.
func (p *plan) drop(m *planned) {
	dropped := m.object
	p.objects = append(append([]apply.Object(nil), p.objects[:dropped]...), p.objects[dropped+1:]...)
	for i := range p.manifests {
		if p.manifests[i].object > dropped {
			p.manifests[i].object--
		}
	}
	m.object = -1
}
