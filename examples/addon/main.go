// Command addon demonstrates the lifecycle of two add-ons on three members: a log collector, which is an agent in Go,
// and a message of the day, which is an AddonTemplate.
//
//	go run ./examples/addon          # installs them, and waits for Ctrl-C
//	go run ./examples/addon --once   # install, configure, release a bad version and a good one, remove; then exit
//
// It needs only Go: it starts four local control planes, one for the hub and one for each member.
//
// collector.go has the add-on in Go. addons.yaml has the objects that a user would apply for both add-ons. hub.go
// embeds the add-ons in a hub. once.go has the steps. fleet.go has the members and their agents, which
// examples/minimal-hub explains.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	once := flag.Bool("once", false, "go once through the life of the add-ons, and exit: 0 if all went well, 1 if a "+
		"step failed or was not done")
	verbose := flag.Bool("v", false, "show the logs of the controllers")
	flag.Parse()
	logger := logr.Discard()
	if *verbose {
		logger = zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stderr))
	}
	ctrl.SetLogger(logger)
	// The first signal stops the program gracefully; a second one ends it immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { <-ctx.Done(); stop() }()
	do := (*fleet).live
	if *once {
		do = (*fleet).once
	}
	if err := run(ctx, do); err != nil {
		fmt.Fprintln(os.Stderr, "addon:", err)
		os.Exit(1)
	}
}

// run starts the fleet, calls do, and stops the fleet.
func run(ctx context.Context, do func(*fleet, context.Context) error) (err error) {
	say("Starting the control planes.")
	f := &fleet{}
	defer func() { err = errors.Join(err, f.stop()) }()
	if err := f.start(ctx); err != nil {
		return err
	}
	return do(f, ctx)
}

// timeLimit is the timeout of one wait. Most waits take a second.
const timeLimit = 60 * time.Second

// until polls done until it returns true. After the time limit, the error contains the awaited state and the last
// reason.
func until(ctx context.Context, what string, done func(context.Context) (bool, string)) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	why := "nothing was seen"
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ok, reason := done(ctx)
		if !ok && ctx.Err() == nil {
			why = reason
		}
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("waited for %s, and in vain: %s", what, why)
	}
	return nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
