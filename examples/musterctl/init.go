package main

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addoncrds "github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// prepared is one thing that init has seen to.
type prepared struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func (a *app) initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Prepare a hub: install the CustomResourceDefinitions, and make its namespaces",
		Long: `Prepare a hub: install the CustomResourceDefinitions of membership, placement, work and add-ons, and
make the namespaces of join tokens and of connections. With --publish-cluster-info, also publish the hub's address and
certificate authority in ConfigMap kube-public/cluster-info, by which clusters find it with a short token. That is there already where kubeadm
has made the hub, and is left as it is.

It installs no controllers: those are part of a program of yours.`,
		Args: cobra.NoArgs,
	}
	format := outputFlag(cmd)
	var publish bool
	var server string
	cmd.Flags().BoolVar(&publish, "publish-cluster-info", false, "let clusters find the hub by its address and a short token, where kubeadm has not done so")
	cmd.Flags().StringVar(&server, "server", "", "URL of the hub in cluster-info (default the one in the kubeconfig)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		tell, end := a.progress()
		done, err := prepare(cmd.Context(), hub, tell)
		if err == nil && publish {
			done = append(done, prepared{"ConfigMap", "kube-public/cluster-info"})
			err = a.publish(cmd.Context(), hub, server, tell)
		}
		end()
		if err != nil {
			return hub.explain(err)
		}
		rows := table{header: []string{"KIND", "NAME"}}
		for _, p := range done {
			rows.add(p.Kind, p.Name)
		}
		return format.print(a.out, done, rows)
	}
	return cmd
}

// publish publishes the hub. If it is published already, publish makes sure that unauthenticated users may read that.
func (a *app) publish(ctx context.Context, hub client.Client, server string, tell func(admin.Step)) error {
	config, err := a.hub()
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return usage("read the certificate authority of the hub: %w", err)
	}
	step := admin.Step{Doing: "publish cluster-info"}
	tell(step)
	there, err := discovery.Published(ctx, hub)
	if err != nil {
		return err
	}
	ca := config.CAData
	switch {
	case there != nil && server == "":
		server, ca, step.Detail = there.Server, there.CA, "it was there already"
	case len(ca) == 0:
		return usage("the kubeconfig of the hub has no certificate authority, by which clusters could verify it")
	case server == "":
		server = config.Host
	}
	if err := discovery.Publish(ctx, hub, server, ca); err != nil {
		return err
	}
	step.Done = true
	tell(step)
	return nil
}

func prepare(ctx context.Context, hub client.Client, tell func(admin.Step)) (done []prepared, err error) {
	for _, group := range []struct {
		name    string
		install func(context.Context, client.Client) error
	}{
		{"membership", membershipcrds.Install}, {"placement", placementcrds.Install}, {"work", workcrds.InstallOnHub}, {"addon", addoncrds.Install},
	} {
		step := admin.Step{Doing: "install the definitions of " + group.name + ".muster.dev"}
		tell(step)
		if err := group.install(ctx, hub); err != nil {
			return nil, err
		}
		step.Done = true
		tell(step)
		done = append(done, prepared{"CustomResourceDefinitions", group.name + ".muster.dev"})
	}
	for _, name := range []string{membership.RegistrationNamespace, membership.ConnectionNamespace} {
		err := hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		done = append(done, prepared{"Namespace", name})
	}
	return done, nil
}
