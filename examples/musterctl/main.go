// Command musterctl administers a fleet from a terminal: it is package membership/admin with flags, tables and exit
// codes. Installed as kubectl-muster it is "kubectl muster".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(interruptible()) }

// interruptible runs the command line until it has ended, or the user ends it by Ctrl-C.
func interruptible() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	quiet()
	return run(ctx, os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}
