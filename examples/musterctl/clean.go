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
		Short: "Remove what muster has left on a member whose hub does not exist any more",
		Long: `Remove what muster has left on a member whose hub does not exist any more, or has deregistered the member: the objects
that Works have applied, the Secrets of the agent, and what register and join have created.

Stop the agent first, and remove it in the way in which it was installed, such as with "clean agent" or kubectl delete -k.
With --hub, the command removes what belongs to one of several hubs. If the hub of the member exists, let the member leave
with unjoin instead.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.cleanHubCommand(), a.cleanAgentCommand())
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "",
		"name of the hub in register; objects of other hubs stay (default the hub without a name)")
	flags.BoolVar(&orphan, "orphan", false, "leave what Works had applied as it is, without an owner")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait for what Works had applied to be gone")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !a.namesMember() {
			return usage("say which cluster is to be cleaned: --member-kubeconfig or --member-context")
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
		what := "all that Works had applied is deleted"
		if orphan {
			what, o.Resources = "what Works had applied stays, without an owner", v1alpha1.OrphanResources
		}
		whose := ""
		if o.Hub != "" {
			whose = " of hub " + o.Hub
		}
		if !yes && !a.agrees(fmt.Sprintf("Clean the cluster at %s? It is no member%s any more then, and %s.", member.Host,
			whose, what)) {
			return fmt.Errorf("nothing was changed: answer with y, or give --yes")
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
