package agent

import (
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
)

// New returns an agent without a manager, for a program that runs outside of its member's cluster, such as a hub that
// runs the agents of its members. Member, Bootstrap and Store of the options must be set: the agent uses no Secrets,
// and records no Events. Start may be called once; it runs until its context ends or the member has left permanently.
// The error is a [*membership.InvalidError] for invalid options, or if one of the three is missing.
func New(o Options) (manager.Runnable, error) {
	const problem = "must be set for an agent without a manager"
	switch {
	case len(o.Hubs) > 0:
		return nil, &membership.InvalidError{Field: "Hubs", Problem: "must not be set for an agent without a manager"}
	case o.Member == nil:
		return nil, &membership.InvalidError{Field: "Member", Problem: problem}
	case o.Bootstrap == nil:
		return nil, &membership.InvalidError{Field: "Bootstrap", Problem: problem}
	case o.Store == nil:
		return nil, &membership.InvalidError{Field: "Store", Problem: problem}
	}
	return newAgent(o.Member, logf.Log.WithName("muster-agent"), o)
}

// SetupWithManager adds an agent to a manager, which it never starts. The agent runs while the manager is the leader.
// It uses the cluster of the manager without its cache, and needs no types in the manager's scheme.
//
// When the member has left permanently the agent ends, and the manager continues without it. The error is a
// [*membership.InvalidError] for invalid options.
//
// The permissions that the agent needs on the member are in the folder rbac.
func SetupWithManager(mgr manager.Manager, o Options) error {
	log := mgr.GetLogger().WithName("muster-agent")
	if len(o.Hubs) > 0 {
		h, err := newHubs(mgr.GetConfig(), log, o)
		if err != nil {
			return fmt.Errorf("set up the agent: %w", err)
		}
		h.events = newEventRecorder(mgr, h.Namespace)
		return mgr.Add(h)
	}
	a, err := newAgent(mgr.GetConfig(), log, o)
	if err != nil {
		return fmt.Errorf("set up the agent: %w", err)
	}
	a.reports.events = newEventRecorder(mgr, a.Namespace)
	a.reports.publication.publisher, _ = a.Store.(statePublisher)
	return mgr.Add(a)
}
