package heartbeat_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/heartbeat"
)

// A Monitor evaluates the heartbeats and times that its caller passes.
func ExampleMonitor() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	monitor := heartbeat.NewMonitor(heartbeat.Policy{})
	monitor.Track("east", time.Minute, now)
	show := func(changed []string) {
		state, _ := monitor.Health("east")
		fmt.Println(changed, state.State, "heard at", state.LastHeard.Format(time.TimeOnly))
	}

	renewed := now.Add(42 * time.Minute) // the agent's clock is wrong, which has no effect
	show(monitor.Observe("east", renewed, now))

	now = now.Add(time.Minute)
	show(monitor.Observe("east", renewed, now)) // an unchanged renewTime is no heartbeat

	for { // a caller sleeps until Next
		next, _ := monitor.Next()
		if changed := monitor.Expire(next); len(changed) > 0 {
			show(changed)
			break
		}
	}

	// Output:
	// [east] Healthy heard at 12:00:00
	// [] Healthy heard at 12:00:00
	// [east] Lost heard at 12:00:00
}

// An agent sends heartbeats as long as it runs, and receives their results. In an agent the Leases are those of a
// client: coordinationv1.NewForConfig(config), then client.Leases("member-east").
func ExampleBeater() {
	beater := heartbeat.NewBeater(&inMemory{}, heartbeat.BeaterOptions{Identity: "agent-0"})

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- beater.Run(ctx) }()

	status := <-beater.Outcomes()
	fmt.Println("failures:", status.Failures, status.LastError)
	beater.SetPeriod(10 * time.Second)

	stop()
	fmt.Println("stopped:", <-done)

	// Output:
	// failures: 0 <nil>
	// stopped: <nil>
}

// A hub adds a Watcher to its manager, tracks the members that have joined, and reconciles members whose health has
// changed.
func ExampleWatcher() {
	setup := func(mgr manager.Manager, reconcile func(member string)) (*heartbeat.Watcher, error) {
		client, err := coordinationv1client.NewForConfig(mgr.GetConfig())
		if err != nil {
			return nil, err
		}
		memberOf := func(namespace string) (string, bool) { return strings.CutPrefix(namespace, "member-") }
		watcher := heartbeat.NewWatcher(client.Leases(metav1.NamespaceAll), memberOf, heartbeat.WatcherOptions{
			OnChange: func(names []string) {
				for _, name := range names {
					reconcile(name) // which calls watcher.Health(name)
				}
			},
			Log: mgr.GetLogger(),
		})
		if err := metrics.Registry.Register(watcher); err != nil {
			return nil, err
		}
		return watcher, mgr.Add(watcher)
	}
	_ = setup
}

// inMemory stores one Lease.
type inMemory struct{ lease *coordinationv1.Lease }

func (m *inMemory) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if m.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	return m.lease, nil
}

func (m *inMemory) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease,
	error) {
	m.lease = l
	return l, nil
}

func (m *inMemory) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease,
	error) {
	m.lease = l
	return l, nil
}
