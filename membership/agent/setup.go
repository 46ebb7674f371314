package agent

import (
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
)

// New returns an agent that does nothing until it is started, for a program that runs it outside of a manager of its member's cluster, such as
// a hub that runs the agents of its members itself. Member, Bootstrap and Store of the options have to be set: the agent asks for no Secrets, and
// tells no Events. Start runs it until its context ends or the member is out for good, once. The error is a [*membership.InvalidError] for
// options that no hub would take, or that lack one of the three.
func New(o Options) (manager.Runnable, error) {
	const problem = "must be set where the agent has no manager"
	switch {
	case len(o.Hubs) > 0:
		return nil, &membership.InvalidError{Field: "Hubs", Problem: "must not be set where the agent has no manager"}
	case o.Member == nil:
		return nil, &membership.InvalidError{Field: "Member", Problem: problem}
	case o.Bootstrap == nil:
		return nil, &membership.InvalidError{Field: "Bootstrap", Problem: problem}
	case o.Store == nil:
		return nil, &membership.InvalidError{Field: "Store", Problem: problem}
	}
	return newAgent(o.Member, logf.Log.WithName("muster-agent"), o)
}

// SetupWithManager adds an agent to a manager, which it never starts. The agent runs while the manager leads. It
// reaches the cluster of the manager without its cache, and needs none of the manager's own scheme.
//
// When the member is out for good the agent ends, and the manager goes on without it. The error is a
// [*membership.InvalidError] for options that no hub would take.
//
// The permissions that it needs on the member are in the folder rbac.
func SetupWithManager(mgr manager.Manager, o Options) error {
	log := mgr.GetLogger().WithName("muster-agent")
	if len(o.Hubs) > 0 {
		h, err := newHubs(mgr.GetConfig(), log, o)
		if err != nil {
			return fmt.Errorf("set up the agent: %w", err)
		}
		h.events = newStory(mgr, h.Namespace)
		return mgr.Add(h)
	}
	a, err := newAgent(mgr.GetConfig(), log, o)
	if err != nil {
		return fmt.Errorf("set up the agent: %w", err)
	}
	a.events = newStory(mgr, a.Namespace)
	a.fare, _ = a.Store.(fareKeeper)
	return mgr.Add(a)
}
