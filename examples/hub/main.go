// Command hub is a complete hub: membership, placements, WorkSets and add-ons. The manifests in deploy/hub run it:
//
//	kubectl apply -k deploy/hub/base    # with an image of this program, see the Dockerfile
//	helm install muster-hub deploy/charts/muster-hub --namespace muster-system --create-namespace
//
// Inside the hub's cluster, set --api-server-url and --api-server-ca-file: members cannot reach the address that a Pod
// uses.
//
// A product has its own version of this program, with its own controllers, add-ons and scheduler plugins in the same
// manager.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/clusterapi"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/push"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/clusterprofile"
)

// leaseName is the name of the Lease by which replicas elect their leader.
const leaseName = "muster-hub"

type flags struct {
	elect                      bool
	namespace, probes, metrics string
	server, caFile             string
	skipDefinitions            bool
	bootstrapTokens            bool
	clusterProfiles            bool
	namespaceQuota             quotaFlag
	connect                    connectionFlags
}

// connectionFlags are the flags of a hub that connects to its members.
type connectionFlags struct {
	push         bool
	installImage string
	// clusterAPI contains the namespaces of Clusters of cluster-api, separated by commas.
	clusterAPI   string
	leaveDeleted bool
}

// quotaFlag is a comma-separated list of limits, such as count/works.work.muster.dev=500,count/secrets=20.
type quotaFlag corev1.ResourceList

func (q quotaFlag) String() string { return "" }

func (q *quotaFlag) Set(list string) error {
	if *q == nil {
		*q = quotaFlag{}
	}
	for entry := range strings.SplitSeq(list, ",") {
		name, limit, _ := strings.Cut(entry, "=")
		quantity, err := resource.ParseQuantity(limit)
		if err != nil {
			return fmt.Errorf("%q must be NAME=NUMBER, such as count/works.work.muster.dev=500", entry)
		}
		(*q)[corev1.ResourceName(name)] = quantity
	}
	return nil
}

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("hub", flag.ContinueOnError)
	set.BoolVar(&f.elect, "leader-elect", false, "run the controllers only while this replica has the Lease "+leaseName)
	set.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the Lease; default: POD_NAMESPACE")
	set.StringVar(&f.probes, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0: none")
	set.StringVar(&f.metrics, "metrics-bind-address", "0", "address of the metrics; 0: none")
	set.StringVar(&f.server, "api-server-url", "", "URL at which members reach the API server of the hub, such as "+
		"https://hub.example.com:6443; default: the URL that this program uses, which members usually cannot reach")
	set.StringVar(&f.caFile, "api-server-ca-file", "", "file with the PEM certificates by which members verify the API "+
		"server; default: those that this program uses")
	set.BoolVar(&f.skipDefinitions, "skip-definitions", false,
		"do not install the CustomResourceDefinitions; they must exist")
	set.BoolVar(&f.connect.push, "push", false,
		"connect to members with joinMode Push, and run their agents in this program")
	set.StringVar(&f.connect.installImage, "install-image", "", "connect to members with joinMode Install, and install "+
		"their agents with this image; default: they are not installed")
	set.BoolVar(&f.bootstrapTokens, "bootstrap-tokens", false, "allow JoinTokens of type BootstrapToken, which are "+
		"Secrets in the namespace kube-system")
	set.BoolVar(&f.clusterProfiles, "cluster-profiles", false, "export members as ClusterProfiles and decisions as "+
		"PlacementDecisions of SIG Multicluster, if their definitions are installed")
	set.StringVar(&f.connect.clusterAPI, "cluster-api-namespaces", "", "create MemberClusters for the Clusters of "+
		"Cluster API with the label "+clusterapi.ImportLabel+"=true in these namespaces, separated by commas; with --push, "+
		"their joinMode is Push, and otherwise Install; default: none")
	set.BoolVar(&f.connect.leaveDeleted, "cluster-api-leave-deleted", false, "let a member leave when the deletion of "+
		"its Cluster of Cluster API was requested")
	set.Var(&f.namespaceQuota, "namespace-quota", "limits for the objects in the namespace of each member, such as "+
		"count/works.work.muster.dev=500,count/secrets=20; default: no limit")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case f.elect && f.namespace == "":
		return f, errors.New("--leader-elect requires --namespace")
	case f.connect.clusterAPI != "" && !f.connect.push && f.connect.installImage == "":
		return f, errors.New("--cluster-api-namespaces requires --push or --install-image")
	case f.connect.leaveDeleted && f.connect.clusterAPI == "":
		return f, errors.New("--cluster-api-leave-deleted requires --cluster-api-namespaces")
	case f.server != "" && !strings.HasPrefix(f.server, "https://"):
		return f, fmt.Errorf("--api-server-url must begin with https://, got %q", f.server)
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
	go func() { <-ctx.Done(); stop() }() // A second signal ends the program immediately.
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctx, config, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}

// run runs the hub until ctx ends. It returns an error if the API server's store was restored from a backup. Kubernetes
// then restarts the program, which lists all objects again.
func run(ctx context.Context, config *rest.Config, f flags) error {
	scheme := runtime.NewScheme()
	if err := assembly.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:         scheme,
		LeaderElection: f.elect, LeaderElectionID: leaseName, LeaderElectionNamespace: f.namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        f.probes, Metrics: metricsserver.Options{BindAddress: f.metrics},
	})
	if err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping",
		healthz.Ping)); err != nil {
		return err
	}
	options := assembly.HubOptions{SkipDefinitions: f.skipDefinitions}
	options.Membership.Server, options.Membership.BootstrapTokens = f.server, f.bootstrapTokens
	options.Membership.NamespaceQuota = corev1.ResourceList(f.namespaceQuota)
	if f.clusterProfiles {
		options.ClusterProfiles = &clusterprofile.Options{}
	}
	if options.Connections, err = f.connect.options(); err != nil {
		return err
	}
	if f.caFile != "" {
		if options.Membership.CA, err = os.ReadFile(f.caFile); err != nil {
			return fmt.Errorf("read --api-server-ca-file: %w", err)
		}
	}
	if err := assembly.SetupHub(ctx, mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// options returns the options of a hub that connects to its members, or nil if it does not.
func (f connectionFlags) options() (*assembly.Connections, error) {
	if !f.push && f.installImage == "" {
		return nil, nil
	}
	connections := &assembly.Connections{}
	if f.clusterAPI != "" {
		connections.ClusterAPI = &clusterapi.Options{Namespaces: strings.Split(f.clusterAPI, ","),
			LeaveDeleted: f.leaveDeleted}
		if !f.push {
			connections.ClusterAPI.JoinMode = membershipv1alpha1.JoinInstall
		}
	}
	if f.push {
		connections.Push = &push.Options{}
	}
	if f.installImage != "" {
		manifests, err := deploy.Agent(deploy.AgentOptions{Image: f.installImage})
		if err != nil {
			return nil, err
		}
		connections.Install = &install.Options{Installer: manifests}
	}
	return connections, nil
}
