package leave_test

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	memberagent "github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/leave"
)

// A hub on which the leave of a member waits until its Works are deleted.
func ExampleGate() {
	setup := func(mgr manager.Manager, c client.Client) error {
		return hub.SetupWithManager(mgr, hub.Options{Gates: []membership.LeaveGate{leave.Gate(c)},
			AgentRules: agent.HubRules()})
	}
	_ = setup
}

// A member that deletes the objects of a hub that has deregistered it.
func ExampleCleaner() {
	setup := func(mgr manager.Manager, member *rest.Config, o memberagent.Options) error {
		cleaner, err := agent.NewCleaner(agent.Options{Member: member})
		if err != nil {
			return err
		}
		o.Cleaners = append(o.Cleaners, leave.Cleaner(cleaner.Clean))
		return memberagent.SetupWithManager(mgr, o)
	}
	_ = setup
}
