// Command minimal-hub runs a hub and its members in one program. It is the smallest program that uses all features.
//
//	go run ./examples/minimal-hub          # a live table, until Ctrl-C
//	go run ./examples/minimal-hub --once   # each step once, then exit
//
// The steps are: join, place, install an add-on, heal, move by a taint, lose a heartbeat, leave, search for remaining
// objects.
//
// It needs only Go: it starts three local control planes, one for the hub and one for each of the members east and
// west. With --hub and --member it uses existing clusters instead:
//
//	go run ./examples/minimal-hub --hub hub.kubeconfig --member east=east.kubeconfig --member west=west.kubeconfig
//
// hub.go embeds a complete hub, agent.go embeds a complete agent, placement.go has the Placement and the WorkSet that
// bring a shop to one of the members, and addon.go has an add-on that follows it there. See examples/addon for more
// add-ons.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

type flags struct {
	once    bool
	verbose bool
	hub     string
	members []string // NAME=KUBECONFIG
}

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("minimal-hub", flag.ContinueOnError)
	set.BoolVar(&f.once, "once", false, "go once through join, placement, an add-on, failover, heartbeat loss and "+
		"leave, and exit: 0 if all went well, 1 if a step failed or was not done")
	set.BoolVar(&f.verbose, "v", false, "show the logs of the controllers")
	set.StringVar(&f.hub, "hub", "", "kubeconfig of the hub; without it local control planes are started")
	set.Func("member", "NAME=KUBECONFIG of a member; may be repeated, and goes with --hub", func(value string) error {
		if name, file, ok := strings.Cut(value, "="); !ok || name == "" || file == "" {
			return fmt.Errorf("want NAME=KUBECONFIG")
		}
		f.members = append(f.members, value)
		return nil
	})
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case f.hub == "" && len(f.members) > 0:
		return f, errors.New("--member goes with --hub")
	case f.hub != "" && len(f.members) == 0:
		return f, errors.New("--hub needs at least one --member")
	}
	return f, nil
}

func main() {
	f, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "minimal-hub:", err)
		os.Exit(2)
	}
	logger := logr.Discard()
	if f.verbose {
		logger = zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stderr))
	}
	ctrl.SetLogger(logger)
	// The first signal stops the program gracefully; a second one ends it immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { <-ctx.Done(); stop() }()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "minimal-hub:", err)
		os.Exit(1)
	}
}
