package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-sdk/muster/membership/admin"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

func (a *app) joinCommand() *cobra.Command {
	o := admin.JoinOptions{}
	var caFile string
	var works bool
	cmd := &cobra.Command{
		Use:   "join NAME",
		Short: "Register a cluster whose agent runs on the hub",
		Long: `Register a cluster whose agent runs on the hub (joinMode Push). The hub must be able to reach the cluster.
Otherwise, use register.

Join creates a ServiceAccount on the member, and binds it to the ClusterRole of --cluster-role. On the hub, join creates
a MemberCluster and a Secret with the kubeconfig of the member.`,
		Example: `  musterctl join east --member-context east
  musterctl join east --member-kubeconfig east.yaml --server https://east.example.com:6443 -o json`,
		Args: cobra.ExactArgs(1),
	}
	a.memberFlags(cmd)
	flags, format := cmd.Flags(), objectOutputFlag(cmd)
	flags.StringVar(&o.ClusterRole, "cluster-role", "cluster-admin", "ClusterRole that the hub gets on the member")
	flags.DurationVar(&o.TokenLifetime, "token-lifetime", 0,
		"lifetime of the hub's token on the member, at least 10m; 0 means that the token is valid until it is revoked")
	flags.StringVar(&o.Server, "server", "", "URL at which the hub reaches the member (default the one in the kubeconfig)")
	flags.StringVar(&caFile, "certificate-authority", "",
		"file with the certificate authority of that server (default the one in the kubeconfig)")
	flags.StringVar(&o.ProxyURL, "proxy-url", "",
		"URL of the proxy through which the hub reaches the member\n"+
			"(default the one in the kubeconfig, or none with --server)")
	flags.StringToStringVar(&o.ProxyHeaders, "proxy-header", nil,
		"headers that the hub sends to the proxy with CONNECT, key=value")
	flags.StringVar(&o.ClusterID, "cluster-id", "",
		"unique ID of the cluster (default the UID of its namespace kube-system)")
	flags.StringToStringVar(&o.Labels, "label", nil, "labels of the member, key=value")
	flags.BoolVar(&o.Hold, "hold", false, "do not accept the member: another user accepts it")
	flags.BoolVar(&works, "works", true, "install the objects on the member that an agent needs to apply Works")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute,
		"maximum time to wait until the member has joined; a negative value does not wait")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		o.Name = args[0]
		if !a.namesMember() {
			return usage("specify the cluster to join: --member-kubeconfig or --member-context")
		}
		hub, err := a.hub()
		if err != nil {
			return err
		}
		member, err := a.member()
		if err != nil {
			return err
		}
		if caFile != "" {
			if o.CA, err = os.ReadFile(caFile); err != nil {
				return usage("read the certificate authority: %w", err)
			}
		}
		if works {
			o.Prepare = workcrds.InstallOnMember
		}
		var end func()
		o.Progress, end = a.progress()
		joined, err := admin.Join(cmd.Context(), hub, member, o)
		end()
		if err != nil {
			return err
		}
		return format.print(a.out, asObject(joined), membersTable(time.Now(), *joined))
	}
	return cmd
}

func (a *app) unjoinCommand() *cobra.Command {
	o := admin.UnjoinOptions{Unprepare: workcrds.RemoveFromMember}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Remove a member and wait until it has left",
		Long: `Remove a member, wait until it has left, and remove the objects of join from the member and from the hub.

The hub removes the add-ons first, then the Works. Then the agent removes its own objects. With --force, the hub removes
the member after one second, and records what was not removed. Those objects stay on the member: remove them with clean.

Objects that register has installed stay on a member that runs its own agent: remove them with clean. Unjoin removes
them too if --member-kubeconfig or --member-context specifies how to reach the member.

The Secret with the kubeconfig of the member is deleted last. If the command ends early, run the same command again to
continue. If the credential in the Secret has expired, add --member-kubeconfig or --member-context. If the member does
not exist any more, add --force.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeMembers,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.Force, "force", false,
		"remove the member after one second, for a member that does not exist any more")
	flags.BoolVar(&o.Keep, "keep", false, "keep the MemberCluster, so that the cluster can join again")
	flags.DurationVar(&o.Timeout, "timeout", 0,
		"maximum time to wait until the member has left; a negative value does not wait\n"+
			"(default the deadline of the leave plus two minutes)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Force && o.Keep {
			return usage("--force cannot be combined with --keep: all later leaves would be forced as well")
		}
		hub, err := a.hub()
		if err != nil {
			return err
		}
		if a.namesMember() {
			if o.Member, err = a.member(); err != nil {
				return err
			}
		}
		var end func()
		o.Progress, end = a.progress()
		leave, err := admin.Unjoin(cmd.Context(), hub, args[0], o)
		end()
		if err != nil {
			return err
		}
		if o.Timeout < 0 && !o.Keep {
			a.note("When %s has left, run the command again to remove the objects of join: %s unjoin %s", args[0],
				a.program, args[0])
		}
		if leave != nil && leave.Forced {
			a.note("%s was removed by force. If the cluster exists, remove its remaining objects: "+
				"%s clean --member-context ...",
				args[0], a.program)
		}
		return nil
	}
	return cmd
}
