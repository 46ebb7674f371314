// Command hub is a complete hub: membership, placements, WorkSets and add-ons. The manifests in deploy/hub run it:
//
//	kubectl apply -k deploy/hub/base    # with an image of this program
//
// A product has a program like this one of its own, with its own controllers, add-ons and scheduler plugins in the same
// manager.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/assembly"
)

// leaseName is the name of the Lease by which replicas elect their leader.
const leaseName = "muster-hub"

type flags struct {
	elect                      bool
	namespace, probes, metrics string
	skipDefinitions            bool
}

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("hub", flag.ContinueOnError)
	set.BoolVar(&f.elect, "leader-elect", false, "run the controllers only while this replica has the Lease "+leaseName)
	set.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the Lease; default: POD_NAMESPACE")
	set.StringVar(&f.probes, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0: none")
	set.StringVar(&f.metrics, "metrics-bind-address", "0", "address of the metrics; 0: none")
	set.BoolVar(&f.skipDefinitions, "skip-definitions", false, "do not install the CustomResourceDefinitions; they must exist")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case f.elect && f.namespace == "":
		return f, errors.New("--leader-elect requires --namespace")
	}
	return f, nil
}

func main() {
	f, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { <-ctx.Done(); stop() }() // A second signal ends the program at once.
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctx, config, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}

// run runs the hub until ctx ends. It also ends, with an error, if the API server's store was restored from a backup:
// Kubernetes starts the program again, and it reads everything anew.
func run(ctx context.Context, config *rest.Config, f flags) error {
	scheme := runtime.NewScheme()
	if err := assembly.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:         scheme,
		LeaderElection: f.elect, LeaderElectionID: leaseName, LeaderElectionNamespace: f.namespace, LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress: f.probes, Metrics: metricsserver.Options{BindAddress: f.metrics},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	if err := assembly.SetupHub(ctx, mgr, assembly.HubOptions{SkipDefinitions: f.skipDefinitions}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
