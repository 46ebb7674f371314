package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "explain", Short: "Explain decisions"}
	cmd.AddCommand(a.explainPlacementCommand())
	return requireSubcommand(cmd)
}

func (a *app) explainPlacementCommand() *cobra.Command {
	var namespace, file string
	cmd := &cobra.Command{
		Use:   "placement [NAME]",
		Short: "Explain which clusters a Placement would choose now, and why not the others",
		Long: `Explain which clusters a Placement would choose now, and why not the others. Nothing is written. With --file
the Placement need not be on the hub: a dry run.

The decision is that of the plugins and the profile that come with muster; a hub with others may decide differently.`,
		Example: `  musterctl explain placement web -n shop
  musterctl explain placement --file web.yaml`,
		Args: cobra.MaximumNArgs(1),
	}
	format := outputFlag(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of the Placement")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with a Placement that need not be on the hub")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) == (file == "") {
			return usage("name a Placement, or give a --file with one")
		}
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		p := &v1alpha1.Placement{}
		if file != "" {
			data, err := os.ReadFile(file)
			if err != nil {
				return usage("read the Placement: %w", err)
			}
			if err := yaml.UnmarshalStrict(data, p); err != nil {
				return usage("read the Placement in %s: %w", file, err)
			}
			if p.Namespace == "" {
				p.Namespace = namespace
			}
		} else if err := hub.Get(cmd.Context(), client.ObjectKey{Namespace: namespace, Name: args[0]}, p); err != nil {
			return err
		}
		options := placement.Options{}
		grants, err := loadGrants(cmd.Context(), hub.Client)
		if err != nil {
			return err
		}
		if grants != nil {
			options.Tenancy = grants
		}
		diagnosis, err := placement.Explain(cmd.Context(), hub, options, p)
		if err != nil {
			return err
		}
		if format.format != outputTable {
			return format.print(a.out, diagnosis, table{})
		}
		if err := a.line("%s", strings.TrimRight(diagnosis.String(), "\n")); err != nil {
			return err
		}
		return diagnosis.Table(a.out)
	}
	return cmd
}
