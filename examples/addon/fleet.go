package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// names are the names of the members.
var names = []string{"east", "north", "west"}

// fleet is a hub with its members and their agents.
type fleet struct {
	hub     client.Client
	config  *rest.Config // of the hub
	planes  map[string]*localplane.Plane
	members map[string]client.Client
	stopHub func() error
	agents  errgroup.Group
	cancel  context.CancelFunc // of the agents
}

// start starts all control planes, the hub, and the agents of the members.
func (f *fleet) start(ctx context.Context) (err error) {
	f.planes, f.members = map[string]*localplane.Plane{}, map[string]client.Client{}
	started := make([]*localplane.Plane, len(names)+1)
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range append([]string{"hub"}, names...) {
		options := localplane.Options{Name: name, Prepare: prepareHub}
		if i > 0 {
			options.Nodes, options.Prepare = 1, prepareMember // a node of kwok, which needs no machine
		}
		group.Go(func() (err error) {
			started[i], err = localplane.Start(groupCtx, options)
			return err
		})
	}
	err = group.Wait()
	for i, name := range append([]string{"hub"}, names...) {
		if started[i] != nil {
			f.planes[name] = started[i]
		}
	}
	if err != nil {
		return fmt.Errorf("start the control planes: %w", err)
	}
	f.config = f.planes["hub"].Config()
	if f.hub, err = client.New(f.config, client.Options{Scheme: newScheme()}); err != nil {
		return err
	}
	f.release("1.0")
	return f.join(ctx)
}

// release stops the hub and starts another release of it.
func (f *fleet) release(version string) {
	if f.stopHub != nil {
		_ = f.stopHub()
	}
	ctx, cancel := context.WithCancel(context.Background())
	var hub errgroup.Group
	hub.Go(func() error { return runHub(ctx, f.config, collector{version, f.received}) })
	f.stopHub = func() error {
		cancel()
		return hub.Wait()
	}
}

// received simulates the store to which the collectors send, because no containers run on the nodes of local control
// planes. Version 2.0-rc1 loses all lines.
func (f *fleet) received(ctx context.Context, member string) (int, error) {
	version, err := f.version(ctx, member)
	if err != nil || version == "2.0-rc1" {
		return 0, err
	}
	return 1200, nil
}

// version returns the version of the collector on a member.
func (f *fleet) version(ctx context.Context, member string) (string, error) {
	collects := &appsv1.Deployment{}
	if err := f.members[member].Get(ctx, client.ObjectKey{Namespace: "muster-addons", Name: "collector"},
		collects); err != nil {
		return "", fmt.Errorf("read the collector on %s: %w", member, err)
	}
	return collects.Spec.Template.Spec.Containers[0].Env[0].Value, nil
}

// join makes all members join with one token.
func (f *fleet) join(ctx context.Context) error {
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "fleet"},
		Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true},
	}
	err := until(ctx, "the JoinToken to be taken", func(ctx context.Context) (bool, string) {
		err := f.hub.Create(ctx, token)
		return client.IgnoreAlreadyExists(err) == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	for _, name := range names {
		config := f.planes[name].Config()
		if f.members[name], err = client.New(config, client.Options{Scheme: newScheme()}); err != nil {
			return err
		}
		f.agents.Go(func() error { return f.runAgent(running, name, config) })
	}
	for _, name := range names {
		err := until(ctx, name+" to join", func(ctx context.Context) (bool, string) {
			cluster := &v1alpha1.MemberCluster{}
			err := f.hub.Get(ctx, client.ObjectKey{Name: name}, cluster)
			return meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionHealthy),
				fmt.Sprintf("its phase is %q (%v)", cluster.Status.Phase, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runAgent runs the agent of a member until ctx ends.
func (f *fleet) runAgent(ctx context.Context, name string, config *rest.Config) error {
	mgr, err := manager.New(config, manager.Options{Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	works := agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
		a, err := workagent.New(workagent.Options{Hub: hub.Config, Namespace: hub.Member.Namespace, Member: config})
		if err != nil {
			return err
		}
		return a.Start(ctx)
	})
	// A user would copy the Secret of the token to the member.
	bootstrap := agent.BootstrapFunc(func(ctx context.Context) (*registration.Bootstrap, error) {
		secret := &corev1.Secret{}
		err := f.hub.Get(ctx, client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: "fleet"}, secret)
		if err != nil || len(secret.Data[registration.BootstrapKey]) == 0 {
			return nil, client.IgnoreNotFound(err)
		}
		return registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	})
	if err := agent.SetupWithManager(mgr, agent.Options{Name: name, Bootstrap: bootstrap,
		Companions: []agent.Companion{works}}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// prepareMember creates the objects that an agent requires on its member.
func prepareMember(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}
	return errors.Join(workcrds.InstallOnMember(ctx, c), client.IgnoreAlreadyExists(c.Create(ctx, namespace)))
}

// stop stops the agents, the hub and the control planes.
func (f *fleet) stop() (err error) {
	if f.cancel != nil {
		f.cancel()
		err = f.agents.Wait()
	}
	if f.stopHub != nil {
		err = errors.Join(err, f.stopHub())
	}
	var planes errgroup.Group
	for _, plane := range f.planes {
		planes.Go(plane.Stop)
	}
	return errors.Join(err, planes.Wait())
}
