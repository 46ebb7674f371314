// Program earlier is a hub or an agent of the release before hubs had an identity. TestUpgrade_EarlierPrograms copies
// it into the source of that release and builds it there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon"
	addoncrds "github.com/muster-sdk/muster/addon/crds"
	addonleave "github.com/muster-sdk/muster/addon/leave"
	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
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

// main runs "earlier hub KUBECONFIG" or "earlier agent KUBECONFIG NAME".
func main() {
	ctrllog.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[2])
	if err == nil {
		config.QPS = -1
		if os.Args[1] == "hub" {
			err = runHub(context.Background(), config)
		} else {
			err = runAgent(context.Background(), config, os.Args[3])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, os.Args[1:], err)
		os.Exit(1)
	}
}

func newManager(config *rest.Config) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), workv1alpha1.AddToScheme(scheme),
		placementv1alpha1.AddToScheme(scheme), addonv1alpha1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, err
	}
	return manager.New(config, manager.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
}

func runHub(ctx context.Context, config *rest.Config) error {
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return err
	}
	err = errors.Join(crds.Install(ctx, c), workcrds.InstallOnHub(ctx, c), placementcrds.Install(ctx, c),
		addoncrds.Install(ctx, c))
	if err != nil {
		return err
	}
	ready := workset.NewReadiness()
	err = errors.Join(
		hub.SetupWithManager(mgr, hub.Options{
			Gates: []membership.LeaveGate{addonleave.Gate(c), leave.Gate(c)}, AgentRules: workagent.HubRules(),
		}),
		placement.SetupWithManager(mgr, placement.Options{Ready: ready}),
		workset.SetupWithManager(mgr, workset.Options{Readiness: ready}),
		addon.SetupWithManager(mgr, addon.Options{Agents: []addon.Agent{greeter{}}}),
	)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func runAgent(ctx context.Context, config *rest.Config, name string) error {
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	cleaner, err := workagent.NewCleaner(workagent.Options{Member: config})
	if err != nil {
		return err
	}
	err = agent.SetupWithManager(mgr, agent.Options{
		Name: name, Cleaners: []membership.LeaveGate{leave.Cleaner(cleaner.Clean)},
		Companions: []agent.Companion{agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
			a, err := workagent.New(workagent.Options{Hub: hub.Config, Namespace: hub.Member.Namespace, Member: config})
			if err != nil {
				return err
			}
			return a.Start(ctx)
		})},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// greeter is the add-on of the tests.
type greeter struct{}

func (greeter) Name() string { return "greeter" }

func (greeter) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	d := &appsv1.Deployment{}
	err := yaml.UnmarshalStrict([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeter, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: greeter}}
  template:
    metadata: {labels: {app: greeter}}
    spec: {containers: [{name: greeter, image: registry.k8s.io/pause:3.10}]}
`), d)
	d.Namespace = in.InstallNamespace
	return []client.Object{d}, err
}
