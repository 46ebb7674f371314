package push_test

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/push"
	workagent "github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/leave"
)

// A hub that runs the agents of its push members, each with an agent of Works as its companion. Package hub is set up
// with workagent.HubRules() among its AgentRules and leave.Gate among its Gates.
func Example() {
	runners := func(mgr manager.Manager) ([]fleet.Runner, error) {
		runner, err := push.New(mgr, push.Options{Agent: func(member fleet.Connected) agent.Options {
			options := agent.Options{Version: "v1.2.3", Companions: []agent.Companion{works(member)}}
			if cleaner, err := workagent.NewCleaner(workagent.Options{Member: member.Config}); err == nil {
				options.Cleaners = []membership.LeaveGate{leave.Cleaner(cleaner.Clean)}
			}
			return options
		}})
		return []fleet.Runner{runner}, err // for fleet.Options
	}
	_ = runners
}

// works returns a companion that applies the Works of a member. It accesses the hub as that member, and the member by
// the kubeconfig.
func works(member fleet.Connected) agent.Companion {
	return agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
		a, err := workagent.New(workagent.Options{Hub: hub.Config, Namespace: hub.Member.Namespace, Member: member.Config})
		if err != nil {
			return err
		}
		return a.Start(ctx)
	})
}
