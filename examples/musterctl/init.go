package main

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addoncrds "github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
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
make the namespaces of join tokens and of connections.

It installs no controllers: those are part of a program of yours.`,
		Args: cobra.NoArgs,
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		tell, end := a.progress()
		done, err := prepare(cmd.Context(), hub, tell)
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
