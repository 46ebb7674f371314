package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// runAgent runs a complete agent, which also applies Works. It returns when ctx ends.
func runAgent(ctx context.Context, config *rest.Config, options agent.Options) error {
	mgr, err := manager.New(config, manager.Options{
		Scheme:  newScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := assembly.SetupAgent(ctx, mgr, assembly.AgentOptions{Membership: options}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// A member is one cluster with its agent. The agent can be stopped and started to simulate a failure.
type member struct {
	name       string
	config     *rest.Config
	kubeconfig string
	client     client.Client
	method     registration.Method

	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan error
}

// give creates the Secret with a join.yaml that the agent reads, as kubectl would.
func (m *member) give(ctx context.Context, joinYAML []byte) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}
	if err := client.IgnoreAlreadyExists(m.client.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create namespace %s on %s: %w", namespace.Name, m.name, err)
	}
	if err := workcrds.InstallOnMember(ctx, m.client); err != nil {
		return fmt.Errorf("prepare %s: %w", m.name, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret},
		Data:       map[string][]byte{registration.BootstrapKey: joinYAML},
	}
	err := m.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s has a Secret %s/%s: it is a member of a hub already, or was to be; delete the Secret if not",
			m.name, secret.Namespace, secret.Name)
	}
	if err != nil {
		return fmt.Errorf("create Secret %s on %s: %w", secret.Name, m.name, err)
	}
	return nil
}

// start starts the agent. The agent continues its membership, because its state is stored on the member.
func (m *member) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- runAgent(ctx, m.config, agent.Options{Name: m.name, Method: m.method, Version: "minimal-hub"})
	}()
	m.cancel, m.done = cancel, done
}

// stop stops the agent, between any two of its actions, and waits until it has stopped.
func (m *member) stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel == nil {
		return nil
	}
	m.cancel()
	m.cancel = nil
	return <-m.done
}
