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
		Short: "Register a cluster that the hub reaches, and whose agent the hub runs",
		Long: `Register a cluster that the hub reaches itself, and whose agent the hub runs (joinMode Push).

On the member it makes a ServiceAccount that may do what the ClusterRole says; on the hub, a MemberCluster and the Secret
with the member's kubeconfig. For a cluster that the hub does not reach, see register.`,
		Example: `  musterctl join east --member-context east
  musterctl join east --member-kubeconfig east.yaml --server https://east.example.com:6443 -o json`,
		Args: cobra.ExactArgs(1),
	}
	a.memberFlags(cmd)
	flags, format := cmd.Flags(), objectOutputFlag(cmd)
	flags.StringVar(&o.ClusterRole, "cluster-role", "cluster-admin", "what the hub may do on the member")
	flags.DurationVar(&o.TokenLifetime, "token-lifetime", 0, "how long the hub's token works (0: until it is taken away)")
	flags.StringVar(&o.Server, "server", "", "URL at which the hub reaches the member (default the one in the kubeconfig)")
	flags.StringVar(&caFile, "certificate-authority", "",
		"file with the authority that this is verified by (default the one in the kubeconfig)")
	flags.StringVar(&o.ProxyURL, "proxy-url", "", "proxy by which the hub reaches the member (default the one in the "+
		"kubeconfig, or none with --server)")
	flags.StringToStringVar(&o.ProxyHeaders, "proxy-header", nil,
		"headers that are sent to the proxy with CONNECT, key=value")
	flags.StringVar(&o.ClusterID, "cluster-id", "",
		"what tells the cluster from others (default the UID of its namespace kube-system)")
	flags.StringToStringVar(&o.Labels, "label", nil, "labels of the member, key=value")
	flags.BoolVar(&o.Hold, "hold", false, "do not accept the member: another user accepts it")
	flags.BoolVar(&works, "works", true, "install what an agent of Works needs on the member")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait until it has joined (negative: not at all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		o.Name = args[0]
		if !a.namesMember() {
			return usage("say which cluster is to join: --member-kubeconfig or --member-context")
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
		Short: "Have a member leave, wait until it is out, and remove what join made",
		Long: `Have a member leave, wait until it is out, and remove what join installed and made on both sides.

What register has installed for an agent of its own stays on the member, for clean to remove, unless this is told by --member-context or
--member-kubeconfig how to reach that.

What keeps a member is taken back in order: add-ons, works, then the agent's own clean-up. With --force the hub goes on after a
second whatever is missing, and puts that on record; what the member has is left there, for clean to remove.

The hub's own kubeconfig of the member is removed last. So whatever ends this command early, the same command goes on: it may need the
member's kubeconfig where that of the hub has ended, or --force where the member is gone for good.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeMembers,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.Force, "force", false, "do not wait for a member that is gone")
	flags.BoolVar(&o.Keep, "keep", false, "keep the MemberCluster, so that the cluster can join again")
	flags.DurationVar(&o.Timeout, "timeout", 0,
		"how long to wait (default the deadline of the leave and two minutes; negative: not at all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Force && o.Keep {
			return usage("--force cannot be had with --keep: all later leaves would be forced as well")
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
			a.note("When it has left, remove what join made: %s unjoin %s", a.program, args[0])
		}
		if leave != nil && leave.Forced {
			a.note("%s was removed by force. If it still runs, remove what it has of the hub: %s clean --member-context ...",
				args[0], a.program)
		}
		return nil
	}
	return cmd
}
