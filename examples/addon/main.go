// Command addon has two add-ons go through their lives on three members: a collector of logs, which is an agent in Go,
// and a message of the day, which is an AddonTemplate.
//
//	go run ./examples/addon          # installs them, and waits for Ctrl-C
//	go run ./examples/addon --once   # install, configure, release a bad version and a good one, remove; then exit
//
// It needs nothing but Go: it starts four local control planes, one for the hub and one for each member.
//
// collector.go is the add-on in Go, addons.yaml has what one would apply for both, hub.go is how to embed them, once.go
// is what happens. The members and their agents are in fleet.go, and are told of in examples/minimal-hub.
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
	// The first signal ends the program in good order; a second one at once.
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

// run starts the fleet, does something with it, and stops it.
func run(ctx context.Context, do func(*fleet, context.Context) error) (err error) {
	say("Starting the control planes.")
	f := &fleet{}
	defer func() { err = errors.Join(err, f.stop()) }()
	if err := f.start(ctx); err != nil {
		return err
	}
	return do(f, ctx)
}

// timeLimit is for one wait; most take a second.
const timeLimit = 60 * time.Second

// until waits for something, and says what it has waited for in vain and why.
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
