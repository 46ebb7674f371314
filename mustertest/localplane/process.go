package localplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gateScript waits for a line before it executes the program in "$@" (with the same PID). The watchdog therefore knows
// the PID before the program creates anything that must be cleaned up. If this process dies before it sends the line,
// the read fails and the program never starts.
const gateScript = `read -r go && exec "$@" </dev/null`

// rareCollections makes the garbage collector of each component run half as often as by default. A plane with
// definitions then uses a tenth less CPU time, and 80 MB more memory.
const rareCollections = "GOGC=200"

// tailLines is the number of lines of a component's log that an error contains.
const tailLines = 15

// A process is a running component of a plane.
type process struct {
	name string
	log  string // path of the file with its output
	cmd  *exec.Cmd

	exited chan struct{} // closed after the process was reaped
	err    error         // of cmd.Wait; set before exited is closed
}

// startProcess starts program with args in the working directory dir and registers it with the watchdog. Its output is
// appended to the file log.
func startProcess(w *watchdog, program, dir, log string, args []string) (*process, error) {
	name := filepath.Base(program)
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", name, err)
	}
	defer out.Close() // The child has its own descriptor.

	cmd := exec.Command("sh", append([]string{"-c", gateScript, name, program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	// No other environment variables are passed on: etcd interprets ETCD_... as flags, kwok interprets KWOK_..., and all
	// programs interpret GODEBUG.
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
		_ = w.deregister(cmd.Process.Pid) // Fails only if the watchdog has ended, which then kills nothing.
	}()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// kill ends the process with SIGKILL and waits until it is reaped.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// ended returns an error with the exit status if the process has ended by itself.
func (p *process) ended() error {
	select {
	case <-p.exited:
		return p.failure(errors.New("ended by itself"))
	default:
		return nil
	}
}

// waitUntil calls ready at intervals until it returns nil. It stops when the process exits or the context ends. The
// error then contains the last error of ready and the end of the log.
func (p *process) waitUntil(ctx context.Context, what string, ready func(context.Context) error) error {
	const interval, timeLimit = 25 * time.Millisecond, 2 * time.Second
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		call, cancel := context.WithTimeout(ctx, timeLimit) // An exit must be detected even if a call hangs.
		err := ready(call)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // An error that is caused by the end of ctx says nothing about the process.
		}
		select {
		case <-p.exited:
			return p.failure(fmt.Errorf("ended before %s", what))
		case <-ctx.Done():
			cause := fmt.Errorf("waited for %s: %w", what, context.Cause(ctx))
			if last != nil {
				// The error is not wrapped: a timeout of one call of ready does not mean that ctx has ended.
				cause = fmt.Errorf("%w (last answer: %s)", cause, last.Error())
			}
			return p.failure(cause)
		case <-ticker.C:
		}
	}
}

// failure returns cause with the exit status of the process, if it has ended, and the end of its log.
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

// tail returns the last lines of the log, each of them indented.
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
