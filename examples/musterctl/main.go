// Command musterctl administers a fleet from a terminal. It adds flags, tables and exit codes to package
// membership/admin. Installed as kubectl-muster, it is the kubectl plugin "kubectl muster".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(interruptible()) }

// interruptible runs the command line until it ends, or until the user interrupts it with Ctrl-C.
func interruptible() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	quiet()
	return run(ctx, os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}
