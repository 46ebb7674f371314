package fleet_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership/fleet"
)

// greeter is a Runner.
type greeter struct{}

func (greeter) Name() string { return "greeter" }

func (greeter) Run(ctx context.Context, member fleet.Connected) error {
	c, err := client.New(member.Config, client.Options{})
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return err // the fleet calls Run again
	}
	fmt.Println(member.Cluster.Name, "has", len(nodes.Items), "nodes")
	return nil
}

// A hub that greets each of its members once.
func Example() {
	setup := func(mgr manager.Manager) error {
		_, err := fleet.SetupWithManager(mgr, fleet.Options{Runners: []fleet.Runner{greeter{}}})
		return err
	}
	_ = setup // with a manager of the hub
}

// printer is notified of clusters, like a multicluster manager.
type printer struct{}

func (printer) Engage(_ context.Context, name string, live cluster.Cluster) error {
	fmt.Println(name, "is at", live.GetConfig().Host)
	return nil
}

// Live clusters for a manager of multicluster-runtime, or for any other manager.
func ExampleProvider() {
	setup := func(mgr manager.Manager) error {
		f, err := fleet.SetupWithManager(mgr, fleet.Options{})
		if err != nil {
			return err
		}
		provider := fleet.NewProvider[string, printer](f, fleet.ProviderOptions{QPS: 50, Burst: 100})
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return provider.Start(ctx, printer{}) }))
	}
	_ = setup // with a manager of the hub
}
