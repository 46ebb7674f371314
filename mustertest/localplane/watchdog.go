package localplane

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// watchdogScript outlives this process by a moment, whatever ended it. It reads "+ PID" and "- PID" lines; at the
// end of input it kills what is still registered and removes the folder $1, and fails if it cannot. The
// removal is repeated since a process that is being killed may still write a file.
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

// A watchdog is a small shell process that cleans up after this one: it holds the reading end of a
// pipe of which this process has the only writing end, so it notices even kill -9.
type watchdog struct {
	folder string
	cmd    *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

func startWatchdog(folder string) (*watchdog, error) {
	cmd := exec.Command("sh", "-c", watchdogScript, "muster-watchdog", folder)
	// Its output stays unset, which is /dev/null: "go test" waits for whoever holds its output.
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

// register must come before the process does anything that would have to be cleaned up.
func (w *watchdog) register(pid int) error { return w.send('+', pid) }

// deregister must follow at once when a process was reaped: its PID may soon be another's.
func (w *watchdog) deregister(pid int) error { return w.send('-', pid) }

func (w *watchdog) send(op rune, pid int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := fmt.Fprintf(w.pipe, "%c %d\n", op, pid); err != nil {
		return fmt.Errorf("tell the watchdog about process %d: %w", pid, err)
	}
	return nil
}

// close has the watchdog do its work now, and waits for it.
func (w *watchdog) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("have the watchdog remove %s: %w", w.folder, err)
	}
	return nil
}
