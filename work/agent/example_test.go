package agent_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// An agent on the member pulls its Works from the hub.
func Example() {
	run := func(ctx context.Context, hub, member *rest.Config) error {
		a, err := agent.New(agent.Options{Hub: hub, Namespace: "member-east", Member: member})
		if err != nil {
			return err
		}
		return a.Start(ctx) // until the context ends; or mgr.Add(a)
	}
	_ = run
}

// A member that does not trust its hub with all permissions of the agent only accepts Works with an executor, and
// only ServiceAccounts of a dedicated namespace.
func ExampleRequireExecutor() {
	ours := agent.RequireExecutor(func(ctx context.Context, work *v1alpha1.Work) error {
		if work.Spec.Executor.Name != "deployer" {
			return fmt.Errorf("spec.executor.name: must be deployer")
		}
		return agent.DefaultExecutorPolicy(ctx, work)
	})
	for _, executor := range []*v1alpha1.Executor{nil, {Namespace: "shop", Name: "admin"}, {Namespace: "kube-system",
		Name: "deployer"}, {Namespace: "shop", Name: "deployer"}} {
		fmt.Println(ours(context.Background(), &v1alpha1.Work{Spec: v1alpha1.WorkSpec{Executor: executor}}))
	}
	// Output:
	// spec.executor: is required by this member
	// spec.executor.name: must be deployer
	// spec.executor.namespace: must not be kube-system: ServiceAccounts of this namespace have elevated permissions
	// <nil>
}

// A member that its hub has deregistered deletes all objects of that hub.
func ExampleCleaner() {
	clean := func(ctx context.Context, member *rest.Config) error {
		cleaner, err := agent.NewCleaner(agent.Options{Member: member})
		if err != nil {
			return err
		}
		for {
			remaining, err := cleaner.Clean(ctx, v1alpha1.DeleteObject)
			if err != nil || len(remaining) == 0 {
				return err
			}
			fmt.Println("still there:", remaining)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
	_ = clean
}
