package agent_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A complete agent program.
func Example() {
	mgr, err := manager.New(config.GetConfigOrDie(), manager.Options{
		LeaderElection: true, LeaderElectionID: "example-agent", LeaderElectionNamespace: agent.DefaultNamespace,
	})
	if err != nil {
		panic(err)
	}
	err = agent.SetupWithManager(mgr, agent.Options{
		Labels:     map[string]string{"example.com/tier": "edge"},
		Collectors: []agent.PropertyCollector{region},
		Cleaners:   []membership.LeaveGate{works},
		OnPhase:    func(step lifecycle.AgentStep) { fmt.Println(step.Phase, step.Message) },
	})
	if err != nil {
		panic(err)
	}
	if err := mgr.Start(signals.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// An agent that switches to another hub when its hub is lost. Each hub has a Secret with its bootstrap credential:
// muster-bootstrap-north and muster-bootstrap-south.
func ExampleSetupWithManager_severalHubs() {
	mgr, err := manager.New(config.GetConfigOrDie(), manager.Options{
		LeaderElection: true, LeaderElectionID: "example-agent", LeaderElectionNamespace: agent.DefaultNamespace,
	})
	if err != nil {
		panic(err)
	}
	err = agent.SetupWithManager(mgr, agent.Options{
		Hubs: []agent.HubOptions{
			{Name: "north", Cleaners: []membership.LeaveGate{works}}, // in practice, each its own
			{Name: "south", Cleaners: []membership.LeaveGate{works}},
		},
		HubTimeout: 10 * time.Minute,
		Companions: []agent.Companion{agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
			fmt.Println("applying what hub", hub.Name, "has for", hub.Member.Name)
			<-ctx.Done()
			return nil
		})},
	})
	if err != nil {
		panic(err)
	}
	if err := mgr.Start(signals.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// works removes the objects of the hub when the member leaves.
var works = membership.GateFunc("works", func(_ context.Context, member membership.Member) ([]string, error) {
	if member.Leave.Resources == v1alpha1.OrphanResources {
		return nil, nil
	}
	return []string{"work/guestbook"}, nil // still there
})

var region = agent.CollectorFunc("region", func(context.Context) ([]v1alpha1.Property, error) {
	return []v1alpha1.Property{{Name: "example.com/region", Value: "eu-north"}}, nil
})

// A collector consists of a name and a function.
func ExampleCollectorFunc() {
	properties, err := region.Collect(context.Background())
	fmt.Println(region.Name(), properties, err)
	// Output: region [{example.com/region eu-north}] <nil>
}

// A companion uses the hub as the member while the cluster is a member. AgentRules of the hub grant its permissions.
func ExampleCompanionFunc() {
	greetings := agent.CompanionFunc("greetings", func(ctx context.Context, hub agent.Hub) error {
		core, err := corev1client.NewForConfig(hub.Config)
		if err != nil {
			return err // it is called again in a while
		}
		watcher, err := core.ConfigMaps(hub.Member.Namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			if greeting, ok := event.Object.(*corev1.ConfigMap); ok {
				fmt.Println(hub.Member.Name, "was told", greeting.Data["greeting"])
			}
		}
		return errors.New("the watch has ended") // of no interest when the context has
	})
	options := agent.Options{Companions: []agent.Companion{greetings}}
	fmt.Println(options.Companions[0].Name())
	// Output: greetings
}
