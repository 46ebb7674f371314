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
		Short: "Move a member to another hub; its workloads stay",
		Long: `Move a member to another hub. The agent stays in its hub until the other one has let it in. Nothing on the member is
deleted or created again: Works of the other hub with the same namespace and name adopt the objects of the former one. Delete
the MemberCluster of the former hub afterwards.`,
		Example: `  musterctl token create --context new-hub --auto-accept --join-file join.yaml
  musterctl move --join-file join.yaml --member-context east --wait 2m`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from.file, "join-file", "",
		`file that "token create --join-file" wrote on the other hub; "-" for the standard input`)
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "", "name that the agent has for the hub, if it has several (default none)")
	flags.BoolVar(&o.Unchecked, "unchecked", false,
		"do not ask the other hub whether it accepts the token, if this machine does not reach it")
	flags.DurationVar(&o.Wait, "wait", 0,
		"how long to wait until the member has joined the other hub (default not at all)")
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
		Short: "Rebuild a hub that was lost, from its members",
		Long: `Rebuild a hub that was lost without a backup, from what the agents of its members have recorded. Call it after init and
before the hub's controllers run; it waits for them to be started. No object on any member is deleted or created again. Apply
Placements, WorkSets and Addons afterwards: they adopt what the lost hub had applied.`,
		Example: `  musterctl init
  musterctl rebuild --member-context east --member-context west --wait 5m`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&a.memberFile, "member-kubeconfig", "", "kubeconfig of the members (default that of the hub)")
	flags.StringArrayVar(&contexts, "member-context", nil, "context of a member in it; repeat the flag for each member")
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agents")
	flags.StringVar(&o.Hub, "hub", "", "name that the agents have for the hub, if they have several (default none)")
	namespaceFlag(cmd, &o.RegistrationNamespace)
	flags.DurationVar(&o.Timeout, "timeout", 10*time.Minute,
		"how long to wait for the hub's controllers to issue a bootstrap credential")
	flags.DurationVar(&o.Wait, "wait", 0, "how long to wait for each member to join (default not at all)")
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
