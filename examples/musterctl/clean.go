package main

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/leave"
)

func (a *app) cleanCommand() *cobra.Command {
	o := admin.CleanOptions{}
	var yes, orphan bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the remaining objects of muster from a member whose hub does not exist any more",
		Long: `Remove the remaining objects of muster from a member whose hub does not exist any more, or has deregistered the
member: the objects that Works have applied, the Secrets of the agent, and the objects that register and join have
created.

Remove the agent first with the tool that installed it, such as "clean agent" or kubectl delete -k. With --hub, the
command removes the objects of one of several hubs. If the hub of the member exists, use unjoin instead.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.cleanHubCommand(), a.cleanAgentCommand())
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "",
		"name of the hub, as in register; objects of other hubs stay (default the hub without a name)")
	flags.BoolVar(&orphan, "orphan", false, "keep the objects that Works have applied, without an owner")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "maximum time to wait until the objects of Works are deleted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !a.namesMember() {
			return usage("specify the cluster to clean: --member-kubeconfig or --member-context")
		}
		member, err := a.member()
		if err != nil {
			return err
		}
		cleaner, err := workagent.NewCleaner(workagent.Options{Member: member, HubName: o.Hub})
		if err != nil {
			return err
		}
		o.Cleaners, o.Unprepare = []membership.LeaveGate{leave.Cleaner(cleaner.Clean)}, workcrds.RemoveFromMember
		what := "all objects that Works have applied are deleted"
		if orphan {
			what, o.Resources = "the objects that Works have applied stay, without an owner", v1alpha1.OrphanResources
		}
		whose := ""
		if o.Hub != "" {
			whose = " of hub " + o.Hub
		}
		if !yes && !a.agrees(fmt.Sprintf("Clean the cluster at %s? The cluster stops being a member%s, and %s.",
			member.Host, whose, what)) {
			return fmt.Errorf("nothing was changed: answer with y, or add --yes")
		}
		var end func()
		o.Progress, end = a.progress()
		defer end()
		return admin.Clean(cmd.Context(), member, o)
	}
	return cmd
}

// agrees prints a question and reports whether the user answered yes. Any other answer is a no.
func (a *app) agrees(question string) bool {
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
