package localplane

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// watchdogScript continues briefly after the end of this process, whatever ended it. It reads "+ PID" and "- PID"
// lines. At the end of input it kills the registered processes and removes the folder $1, and fails if it cannot. It
// repeats the removal, because a process may still write a file while it is being killed.
const watchdogScript = `
trap '' HUP INT TERM
pids=
while read -r op pid; do
	case $op in
	+) pids="$pids $pid" ;;
	-) left=
	   for p in $pids; do [ "$p" = "$pid" ] || left="$left $p"; done
	   pids=$left ;;
	esac
done
for pid in $pids; do kill -9 "$pid"; done
tries=0
while [ -e "$1" ] && [ $tries -lt 20 ]; do
	rm -rf -- "$1" || sleep 1
	tries=$((tries + 1))
done
[ ! -e "$1" ]
`

// A watchdog is a small shell process that cleans up after this process. It reads from a pipe whose only writing end
// this process has, so it detects the end of this process even after kill -9.
type watchdog struct {
	folder string
	cmd    *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

func startWatchdog(folder string) (*watchdog, error) {
	cmd := exec.Command("sh", "-c", watchdogScript, "muster-watchdog", folder)
	// The output of the watchdog is /dev/null, because "go test" waits for all processes that have its output open.
	cmd.SysProcAttr = detached()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the watchdog of %s: %w", folder, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog of %s: %w", folder, err)
	}
	return &watchdog{folder: folder, cmd: cmd, pipe: pipe}, nil
}

// register registers a process with the watchdog. Call it before the process creates anything that must be cleaned up.
func (w *watchdog) register(pid int) error { return w.send('+', pid) }

// deregister removes a process from the watchdog. Call it immediately after the process was reaped, because its PID may
// be reused.
func (w *watchdog) deregister(pid int) error { return w.send('-', pid) }

func (w *watchdog) send(op rune, pid int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := fmt.Fprintf(w.pipe, "%c %d\n", op, pid); err != nil {
		return fmt.Errorf("tell the watchdog about process %d: %w", pid, err)
	}
	return nil
}

// close makes the watchdog clean up, and waits until it has done so.
func (w *watchdog) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("have the watchdog remove %s: %w", w.folder, err)
	}
	return nil
}
