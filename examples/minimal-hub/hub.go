package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/addon"
	addoncrds "github.com/muster-sdk/muster/addon/crds"
	addonleave "github.com/muster-sdk/muster/addon/leave"
	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/leave"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// newScheme knows the objects of Kubernetes and those of muster.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, workv1alpha1.AddToScheme, placementv1alpha1.AddToScheme, addonv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: a fault of the program
		}
	}
	return scheme
}

// runHub is all that it takes to embed a hub: install the definitions, make a manager as for any controller, hand it
// over. It returns when ctx ends.
func runHub(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	err = errors.Join(crds.Install(ctx, c), workcrds.InstallOnHub(ctx, c), placementcrds.Install(ctx, c), addoncrds.Install(ctx, c))
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:  newScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"}, // a product would serve them
	})
	if err != nil {
		return err
	}
	// A leave waits until the member has no add-ons any more, and then until it has taken back its other Works. Agents may read Works and report on them.
	err = hub.SetupWithManager(mgr, hub.Options{Gates: []membership.LeaveGate{addonleave.Gate(c), leave.Gate(c)}, AgentRules: workagent.HubRules()})
	if err != nil {
		return err
	}
	// Placements choose members, WorkSets reach them, and say where all is ready. Add-ons go to members of Placements, too.
	ready := workset.NewReadiness()
	err = errors.Join(
		placement.SetupWithManager(mgr, placement.Options{Ready: ready}),
		workset.SetupWithManager(mgr, workset.Options{Readiness: ready}),
		addon.SetupWithManager(mgr, addon.Options{Agents: []addon.Agent{greeter{}}}),
	)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newJoinToken makes a JoinToken, and returns what the hub then puts into its Secret: all that an agent needs.
func newJoinToken(ctx context.Context, c client.Client, name string, spec v1alpha1.JoinTokenSpec) ([]byte, error) {
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: name},
		Spec:       spec,
	}
	err := until(ctx, 30*time.Second, "JoinToken "+name+" to be taken", func(ctx context.Context) (bool, string) {
		err := client.IgnoreAlreadyExists(c.Create(ctx, token))
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	err = until(ctx, 30*time.Second, "the Secret of JoinToken "+name, func(ctx context.Context) (bool, string) {
		err := c.Get(ctx, client.ObjectKeyFromObject(token), &secret)
		return err == nil && len(secret.Data[registration.BootstrapKey]) > 0, fmt.Sprint(err)
	})
	return secret.Data[registration.BootstrapKey], err
}
