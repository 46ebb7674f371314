package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership/admin"
)

const rootHelp = `musterctl installs a hub, registers clusters with the hub, and administers the fleet.

  musterctl init --image HUB-IMAGE                   install the hub
  musterctl join east --member-context east          the hub runs the agent of the member
  musterctl token create --join-file join.yaml       the member runs its own agent:
  musterctl register --join-file join.yaml --image AGENT-IMAGE --wait 2m --member-context east
  musterctl accept NAME
  musterctl get members
  musterctl unjoin east

Every command can be repeated. It continues from the current state of the clusters.

Results are written to standard output, progress and errors to standard error. Exit codes:

  0  success
  1  failure for a reason that is not listed below
  2  the command line, or a file that it names, is invalid
  3  a preflight check failed; nothing was changed
  4  timeout; completed changes remain, and the same command continues
  5  the name belongs to another cluster, or the cluster is already a member
  6  a cluster cannot be reached
  7  the cluster was denied, the join token is expired or unknown, or the hub cannot be verified`

// streams are the input and the outputs of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is one invocation of the command.
type app struct {
	streams
	program string // as the user calls it: "musterctl" or "kubectl muster"
	started bool   // the command line is valid so far

	hubFile, hubContext       string
	memberFile, memberContext string

	as       string // the user of the hub to impersonate
	asGroups []string
}

// quiet disables the logs of libraries. The errors contain all relevant information.
func quiet() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// run runs the command line and returns the exit code. The first argument is the name of the program.
func run(ctx context.Context, args []string, io streams) int {
	a := &app{streams: io, program: programOf(args[0])}
	root := a.root()
	root.SetArgs(args[1:])
	return a.report(root.ExecuteContext(ctx))
}

// programOf returns the command by which a user calls the program with this file name.
func programOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".exe")
	if plugin, is := strings.CutPrefix(name, "kubectl-"); is {
		return "kubectl " + plugin
	}
	return name
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               strings.ReplaceAll(a.program, " ", "-"),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.program},
		Short:             "Administer a fleet of clusters",
		Long:              strings.ReplaceAll(rootHelp, "musterctl ", a.program+" "),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(*cobra.Command, []string) error { a.started = true; return nil },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	flags := root.PersistentFlags()
	flags.StringVar(&a.hubFile, "kubeconfig", "", "kubeconfig of the hub (default $KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&a.as, "as", "", "user to impersonate on the hub")
	flags.StringSliceVar(&a.asGroups, "as-group", nil, "groups to impersonate on the hub; can be repeated")
	flags.StringVar(&a.hubContext, "context", "", "context of the hub in its kubeconfig (default the current context)")
	root.AddCommand(
		a.initCommand(), a.joinCommand(), a.registerCommand(), a.tokenCommand(), a.acceptCommand(), a.denyCommand(),
		a.unjoinCommand(), a.moveCommand(), a.rebuildCommand(), a.releaseCommand(), a.getCommand(), a.explainCommand(),
		a.canPlaceCommand(), a.whoMayCommand(), a.cordonCommand(), a.uncordonCommand(), a.drainCommand(), a.taintCommand(),
		a.rolloutCommand(), a.addonCommand(),
		a.upgradeCommand(), a.cleanCommand(), a.versionCommand(),
	)
	a.rename(root)
	return root
}

// requireSubcommand makes a command fail without a subcommand, or with an unknown one.
func requireSubcommand(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		if len(args) == 0 {
			return usage("%s requires one of %s", cmd.Name(), strings.Join(names, ", "))
		}
		return usage("%s: unknown %q: use one of %s", cmd.Name(), args[0], strings.Join(names, ", "))
	}
	return cmd
}

// rename replaces the program name in the examples by the name that the user called.
func (a *app) rename(cmd *cobra.Command) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "musterctl ", a.program+" ")
	for _, sub := range cmd.Commands() {
		a.rename(sub)
	}
}

// memberFlags adds the flags of commands that connect to a member.
func (a *app) memberFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.memberFile, "member-kubeconfig", "", "kubeconfig of the member (default that of the hub)")
	cmd.Flags().StringVar(&a.memberContext, "member-context", "",
		"context of the member in its kubeconfig (default the current context)")
}

// namespaceFlag adds the flag of commands for join tokens and requests.
func namespaceFlag(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVar(namespace, "registration-namespace", "muster-registration",
		"namespace on the hub for JoinTokens and JoinRequests")
}

// progress shows the steps of a function of package admin. Call end before any other output.
func (a *app) progress() (notify func(admin.Step), end func()) {
	p := newProgress(a.err)
	return p.notify, p.end
}
