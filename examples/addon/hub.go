package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/addon"
	addoncrds "github.com/muster-sdk/muster/addon/crds"
	addonleave "github.com/muster-sdk/muster/addon/leave"
	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workleave "github.com/muster-sdk/muster/work/leave"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// runHub runs a release of the hub that contains a release of the collector. It returns when ctx ends.
func runHub(ctx context.Context, config *rest.Config, logs collector) error {
	mgr, err := manager.New(config, manager.Options{
		Scheme:     newScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},              // a product would serve them
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // the next release runs in the same process
	})
	if err != nil {
		return err
	}
	c := mgr.GetClient()
	err = errors.Join(
		// The gates remove the add-ons of a leaving member first, and then its other Works.
		hub.SetupWithManager(mgr, hub.Options{
			Gates: []membership.LeaveGate{addonleave.Gate(c), workleave.Gate(c)}, AgentRules: workagent.HubRules(),
		}),
		placement.SetupWithManager(mgr, placement.Options{}),
		addon.SetupWithManager(mgr, addon.Options{Agents: []addon.Agent{logs}}),
	)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// prepareHub installs all CustomResourceDefinitions.
func prepareHub(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	return errors.Join(crds.Install(ctx, c), workcrds.InstallOnHub(ctx, c), placementcrds.Install(ctx, c),
		addoncrds.Install(ctx, c))
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, workv1alpha1.AddToScheme, placementv1alpha1.AddToScheme,
		addonv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types have the same name, which is a bug in the program
		}
	}
	return scheme
}
