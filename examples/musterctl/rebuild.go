package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-sdk/muster/membership/admin"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

func (a *app) moveCommand() *cobra.Command {
	o := admin.RegisterOptions{}
	from := credentialSource{}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move a member to another hub without a restart of its workloads",
		Long: `Move a member to another hub. The agent belongs to its current hub until the other hub has accepted it. No object
on the member is deleted or created again: Works of the other hub adopt the objects of Works with the same namespace and
name. Delete the MemberCluster on the former hub afterwards.`,
		Example: `  musterctl token create --context new-hub --auto-accept --join-file join.yaml
  musterctl move --join-file join.yaml --member-context east --wait 2m`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from.file, "join-file", "",
		`file that "token create --join-file" wrote on the other hub; "-" for the standard input`)
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "",
		"name of the hub in the options of the agent, for an agent of several hubs (default none)")
	flags.BoolVar(&o.Unchecked, "unchecked", false,
		"do not check the token at the other hub, for a hub that only the member can reach")
	flags.DurationVar(&o.Wait, "wait", 0,
		"maximum time to wait until the member has joined the other hub (default do not wait)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		member, err := a.member()
		if err != nil {
			return err
		}
		bootstrap, err := a.credential(cmd.Context(), from)
		if err != nil {
			return err
		}
		o.Prepare = workcrds.InstallOnMember
		var end func()
		o.Progress, end = a.progress()
		defer end()
		return admin.Move(cmd.Context(), member, bootstrap, o)
	}
	return cmd
}

func (a *app) rebuildCommand() *cobra.Command {
	o := admin.RebuildOptions{}
	var contexts []string
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild a lost hub from its members",
		Long: `Rebuild a hub that was lost without a backup, from the records of the agents of its members. Run rebuild after
init and before the controllers of the hub run. Start the controllers while rebuild waits for them. No object on any
member is deleted or created again. Apply Placements, WorkSets and Addons afterwards: they adopt the objects that the
lost hub had applied.`,
		Example: `  musterctl init
  musterctl rebuild --member-context east --member-context west --wait 5m`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&a.memberFile, "member-kubeconfig", "", "kubeconfig of the members (default that of the hub)")
	flags.StringArrayVar(&contexts, "member-context", nil,
		"context of a member in the kubeconfig; repeat the flag for each member")
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agents")
	flags.StringVar(&o.Hub, "hub", "",
		"name of the hub in the options of the agents, for agents of several hubs (default none)")
	namespaceFlag(cmd, &o.RegistrationNamespace)
	flags.DurationVar(&o.Timeout, "timeout", 10*time.Minute,
		"maximum time to wait until the controllers of the hub have issued a bootstrap credential")
	flags.DurationVar(&o.Wait, "wait", 0, "maximum time to wait until each member has joined (default do not wait)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(contexts) == 0 {
			return usage("name the members of the lost hub: --member-context")
		}
		hub, err := a.hub()
		if err != nil {
			return err
		}
		for _, a.memberContext = range contexts {
			member, err := a.member()
			if err != nil {
				return err
			}
			o.Members = append(o.Members, member)
		}
		var end func()
		o.Progress, end = a.progress()
		defer end()
		return admin.Rebuild(cmd.Context(), hub, o)
	}
	return cmd
}
