package localplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// gateScript waits for a line before it becomes the program in "$@" (with the same PID), so that
// the watchdog knows the PID before there is anything to clean up. When this process dies in
// between, the read fails and the program never starts.
const gateScript = `read -r go && exec "$@" </dev/null`

// rareCollections has the garbage collector of each component run half as often as by default. A plane with definitions
// then uses a tenth less CPU time, and 80 MB more memory.
const rareCollections = "GOGC=200"

// tailLines is how much of a component's log goes into an error.
const tailLines = 15

// A process is a running component of a plane.
type process struct {
	name string
	log  string // path of the file that has its output
	cmd  *exec.Cmd

	exited chan struct{} // closed once the process was reaped
	err    error         // how it ended; only after exited
}

// startProcess starts program with args in the working directory dir and has the watchdog look after it. Output is
// appended to the file at log.
func startProcess(w *watchdog, program, dir, log string, args []string) (*process, error) {
	name := filepath.Base(program)
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", name, err)
	}
	defer out.Close() // The child has its own descriptor.

	cmd := exec.Command("sh", append([]string{"-c", gateScript, name, program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	// Nothing else from the environment: etcd takes any ETCD_... as a flag, kwok KWOK_..., and all of them GODEBUG.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, rareCollections, promptNamespaces}
	cmd.SysProcAttr = detached()
	gate, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, log: log, cmd: cmd, exited: make(chan struct{})}
	err = w.register(cmd.Process.Pid)
	if err == nil {
		_, err = gate.Write([]byte("go\n"))
	}
	_ = gate.Close()
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
		_ = w.deregister(cmd.Process.Pid) // Fails only when the watchdog is gone, and with it the danger.
	}()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// kill ends the process by SIGKILL and waits until it is reaped.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop ends the process by SIGTERM, and by SIGKILL when it takes longer than timeLimit. It says how
// the process had ended if it was not there any more.
func (p *process) stop(timeLimit time.Duration) error {
	select {
	case <-p.exited:
		return p.failure(errors.New("ended by itself"))
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(timeLimit)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
	}
	return nil
}

// waitUntil calls ready every interval until it returns nil. It gives up when the process exits or
// the context ends; the error then has the last answer of ready and the end of the log.
func (p *process) waitUntil(ctx context.Context, what string, ready func(context.Context) error) error {
	const interval, timeLimit = 25 * time.Millisecond, 2 * time.Second
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		call, cancel := context.WithTimeout(ctx, timeLimit) // An exit must be noticed even if a call hangs.
		err := ready(call)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // What an ended context makes of the call says nothing about the process.
		}
		select {
		case <-p.exited:
			return p.failure(fmt.Errorf("ended before %s", what))
		case <-ctx.Done():
			cause := fmt.Errorf("waited for %s: %w", what, context.Cause(ctx))
			if last != nil {
				// Not wrapped: a call of ready that took too long is no end of ctx.
				cause = fmt.Errorf("%w (last answer: %s)", cause, last.Error())
			}
			return p.failure(cause)
		case <-ticker.C:
		}
	}
}

// failure adds to cause how the process ended, if it did, and the end of its log.
func (p *process) failure(cause error) error {
	state := "still running"
	select {
	case <-p.exited:
		state = "exit status 0"
		if p.err != nil {
			state = p.err.Error()
		}
	default:
	}
	err := fmt.Errorf("%s: %w (%s); the end of its log:\n%s", p.name, cause, state, p.tail())
	if tail := p.tail(); strings.Contains(tail, "address already in use") || strings.Contains(tail, "runtime/panic.go:") {
		return &transientError{err}
	}
	return err
}

// tail returns the last lines of the log, each indented.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return "\t" + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "\t" + strings.Join(lines, "\n\t")
}
