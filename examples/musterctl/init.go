package main

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addoncrds "github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// initFlags are the flags of init.
type initFlags struct {
	deployFlags
	components           []string
	arguments            []string
	server               string
	publish              bool
	printRegisterCommand bool
	register             registerFlags
	timeout              time.Duration
}

func (a *app) initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install a hub, or prepare a cluster for your own hub program",
		Long: `Install the CustomResourceDefinitions of membership, placement, work and add-ons, and create the
namespaces of join tokens and connections.

With --image, init also deploys the hub program in the namespace muster-system, publishes the address and the certificate
authority of the hub in ConfigMap kube-public/cluster-info, and waits until the program is available. The image contains
examples/hub, or your own program with the same flags. Run init again with the same flags to continue after an
error.

Without --image, init installs no controllers: your own program runs them. In this case, set --publish-cluster-info to
publish the hub. Init does not change an existing cluster-info, for example that of kubeadm.`,
		Example: `  musterctl init --image registry.example.com/hub:v1 --server https://hub.example.com:6443
  musterctl init --image registry.example.com/hub:v1 --manifests > hub.yaml
  musterctl init --publish-cluster-info`,
		Args: cobra.NoArgs,
	}
	f, format := &initFlags{}, outputFlag(cmd)
	f.add(cmd, "image of the hub program")
	f.addManifests(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.components, "component", nil,
		"component of deploy/hub to install: "+strings.Join(deploy.HubComponents(), ", ")+"; can be repeated")
	flags.StringArrayVar(&f.arguments, "argument", nil,
		"argument of the hub program, such as --install-image=IMAGE; can be repeated")
	flags.StringVar(&f.server, "server", "",
		"URL at which members reach the API server of the hub (default the one in the kubeconfig)")
	flags.BoolVar(&f.publish, "publish-cluster-info", false,
		"publish the hub, so that clusters can find it with its address and a short token (default true with --image)")
	flags.BoolVar(&f.printRegisterCommand, "print-register-command", false,
		"create a join token, and print the command that registers a cluster with it; the command contains a secret;\n"+
			"requires --image")
	f.register.addImage(cmd)
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "maximum time to wait until the hub program is available")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.validate(); err != nil {
			return err
		}
		if f.image != "" && !cmd.Flags().Changed("publish-cluster-info") {
			f.publish = true
		}
		return a.init(cmd.Context(), f, format)
	}
	return cmd
}

func (f *initFlags) validate() error {
	switch {
	case f.image == "" && len(f.components) > 0:
		return usage("--component requires --image")
	case f.image == "" && len(f.arguments) > 0:
		return usage("--argument requires --image")
	case f.image == "" && f.printRegisterCommand:
		return usage("--print-register-command requires --image: create the join token when your hub program runs")
	case f.register.agentImage != "" && !f.printRegisterCommand:
		return usage("--agent-image requires --print-register-command")
	case f.image == "" && f.dryRun:
		return usage("--dry-run requires --image")
	case f.printRegisterCommand && (f.dryRun || f.manifests):
		return usage("--print-register-command changes the hub: do not combine it with --dry-run or --manifests")
	default:
		return f.deployFlags.validate()
	}
}

// hubObjects returns the manifests of the hub. Server is the URL for members. If it is empty, the hub program
// determines the URL.
func hubObjects(f *initFlags, server string) ([]*unstructured.Unstructured, error) {
	for _, component := range f.components {
		if !slices.Contains(deploy.HubComponents(), component) {
			return nil, usage("--component %s: must be one of %s", component, strings.Join(deploy.HubComponents(), ", "))
		}
	}
	objects, err := deploy.Hub(f.components...)
	if err != nil {
		return nil, err
	}
	var arguments []string
	if server != "" {
		arguments = append(arguments, "--api-server-url="+server)
	}
	arguments = append(arguments, f.arguments...)
	return deploy.Customize(objects, deploy.Customization{Image: f.image, Arguments: arguments})
}

func (a *app) init(ctx context.Context, f *initFlags, format *output) error {
	if f.manifests {
		objects, err := hubObjects(f, f.server)
		if err != nil {
			return err
		}
		return printManifests(a.out, objects)
	}
	config, err := a.hub()
	if err != nil {
		return err
	}
	server := f.server
	if server == "" && !isLoopback(config.Host) {
		server = config.Host
	}
	var objects []*unstructured.Unstructured
	if f.image != "" {
		if objects, err = hubObjects(f, server); err != nil {
			return err
		}
		if server == "" {
			a.note("Other machines cannot reach %s, the address in the kubeconfig. Add --server with the address for members.",
				config.Host)
		}
	}
	hub, err := a.hubClient()
	if err != nil {
		return err
	}
	if f.dryRun {
		results, err := f.apply(ctx, hub.Client, objects)
		if err != nil {
			return hub.explain(err)
		}
		return format.print(a.out, results, appliedTable(results))
	}
	notify, end := a.progress()
	results, err := a.install(ctx, hub, f, objects, notify)
	end()
	if err != nil {
		return hub.explain(err)
	}
	if f.printRegisterCommand {
		return a.printRegisterCommand(ctx, config, admin.TokenOptions{Timeout: f.timeout}, f.register)
	}
	if err := format.print(a.out, results, appliedTable(results)); err != nil {
		return err
	}
	if f.image != "" {
		a.note("The hub is ready. Print the command that registers a cluster: %s token create --print-register-command",
			a.program)
	}
	return nil
}

// install prepares the hub and deploys its objects, if objects is not empty.
func (a *app) install(ctx context.Context, hub *hubClient, f *initFlags, objects []*unstructured.Unstructured,
	notify func(admin.Step),
) ([]applied, error) {
	results, err := prepare(ctx, hub, notify)
	if err != nil {
		return nil, err
	}
	if f.publish {
		results = append(results, applied{Kind: "ConfigMap", Namespace: "kube-public", Name: "cluster-info"})
		if err := a.publish(ctx, hub, f.server, notify); err != nil {
			return nil, err
		}
	}
	if f.image == "" {
		return results, nil
	}
	step := admin.Step{Doing: "deploy the hub program"}
	notify(step)
	more, err := f.apply(ctx, hub.Client, objects)
	if err != nil {
		return nil, err
	}
	step.Detail, step.Done = summary(more), true
	notify(step)
	key := client.ObjectKey{Namespace: agent.DefaultNamespace, Name: hubName}
	return append(results, more...), waitForRollout(ctx, hub.Client, key, f.timeout, notify)
}

// isLoopback reports whether a server is only reachable from this machine.
func isLoopback(server string) bool {
	address, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(address.Hostname())
	return address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// publish publishes the hub in cluster-info. If it is already published, publish makes sure that unauthenticated users
// may read cluster-info.
func (a *app) publish(ctx context.Context, hub client.Client, server string, notify func(admin.Step)) error {
	config, err := a.hub()
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return usage("read the certificate authority of the hub: %w", err)
	}
	step := admin.Step{Doing: "publish cluster-info"}
	notify(step)
	there, err := discovery.Published(ctx, hub)
	if err != nil {
		return err
	}
	ca := config.CAData
	switch {
	case there != nil && server == "":
		server, ca, step.Detail = there.Server, there.CA, "it is already published"
	case len(ca) == 0:
		return usage("the kubeconfig of the hub contains no certificate authority, with which clusters verify the hub")
	case server == "":
		server = config.Host
	}
	if err := discovery.Publish(ctx, hub, server, ca); err != nil {
		return err
	}
	step.Done = true
	notify(step)
	return nil
}

func prepare(ctx context.Context, hub client.Client, notify func(admin.Step)) (done []applied, err error) {
	for _, group := range []struct {
		name    string
		install func(context.Context, client.Client) error
	}{
		{"membership", membershipcrds.Install}, {"placement", placementcrds.Install},
		{"work", workcrds.InstallOnHub}, {"addon", addoncrds.Install},
	} {
		step := admin.Step{Doing: "install the CustomResourceDefinitions of " + group.name + ".muster.dev"}
		notify(step)
		if err := group.install(ctx, hub); err != nil {
			return nil, err
		}
		step.Done = true
		notify(step)
		done = append(done, applied{Kind: "CustomResourceDefinitions", Name: group.name + ".muster.dev"})
	}
	for _, name := range []string{membership.RegistrationNamespace, membership.ConnectionNamespace} {
		err := hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		done = append(done, applied{Kind: "Namespace", Name: name})
	}
	return done, nil
}
