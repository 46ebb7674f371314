package hub_test

import (
	"context"
	"fmt"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A hub with its own policy, in a manager that may have other controllers as well.
func ExampleSetupWithManager() {
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	config := &rest.Config{Host: "https://hub.example.com:6443"} // ctrl.GetConfigOrDie() in a program
	mgr, err := manager.New(config, manager.Options{Scheme: scheme})
	if err != nil {
		fmt.Println("the API server does not respond")
		return
	}
	err = hub.SetupWithManager(mgr, hub.Options{
		Acceptor: membership.AcceptorFunc(func(context.Context, *v1alpha1.JoinRequest) (membership.Acceptance, error) {
			return membership.Acceptance{Decision: membership.Accept}, nil
		}),
		Gates: []membership.LeaveGate{membership.GateFunc("backups",
			func(context.Context, membership.Member) ([]string, error) {
				return nil, nil
			})},
	})
	if err != nil {
		fmt.Println(err)
	}
}

// The permissions that all agents share, and permissions that a product adds.
func ExampleAgentRole() {
	for _, rule := range hub.AgentRole().Rules {
		fmt.Println(rule.Resources, rule.ResourceNames, rule.Verbs)
	}
	// Output:
	// [memberships] [] [get list watch]
	// [memberships/status] [] [get patch update]
	// [leases] [] [create]
	// [leases] [heartbeat] [get update]
}
