package localplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// PauseAPIServer suspends the API server, and returns when it is suspended. Connections stay open and the kernel
// accepts new ones, but the API server responds to no request until ResumeAPIServer. PauseAPIServer returns an error if
// the API server is not running.
func (p *Plane) PauseAPIServer(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.running.apiServer == nil {
		return fmt.Errorf("pause the API server of plane %s: it is not running", p.opts.Name)
	}
	if err := p.running.apiServer.pause(ctx); err != nil {
		return fmt.Errorf("pause the API server of plane %s: %w", p.opts.Name, err)
	}
	return nil
}

// ResumeAPIServer resumes the API server after PauseAPIServer. It does nothing if the API server is not paused. It
// returns an error if the API server is not running.
func (p *Plane) ResumeAPIServer() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.running.apiServer == nil {
		return fmt.Errorf("resume the API server of plane %s: it is not running", p.opts.Name)
	}
	if err := p.running.apiServer.resume(); err != nil {
		return fmt.Errorf("resume the API server of plane %s: %w", p.opts.Name, err)
	}
	return nil
}

// pause suspends the process and returns when none of its threads runs.
func (p *process) pause(ctx context.Context) error {
	if err := suspend(p.cmd.Process); err != nil {
		return fmt.Errorf("pause %s: %w", p.name, err)
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		paused, err := isPaused(ctx, p.cmd.Process.Pid)
		switch {
		case err != nil:
			return errors.Join(fmt.Errorf("pause %s: %w", p.name, err), p.resume())
		case paused:
			return nil
		}
		select {
		case <-p.exited:
			return p.failure(errors.New("ended by itself"))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("pause %s: %w", p.name, context.Cause(ctx)), p.resume())
		case <-ticker.C:
		}
	}
}

// resume resumes a paused process.
func (p *process) resume() error {
	if err := proceed(p.cmd.Process); err != nil {
		return fmt.Errorf("resume %s: %w", p.name, err)
	}
	return nil
}

// isPaused reports whether every thread of a process is suspended. A signal stops the threads one after the other.
func isPaused(ctx context.Context, pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	if len(threads) == 0 { // macOS has no /proc, but ps.
		out, err := exec.CommandContext(ctx, "ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
		return strings.HasPrefix(strings.TrimSpace(string(out)), "T"), err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue // The thread has ended.
		}
		if err != nil {
			return false, err
		}
		// The state follows the name, which is in parentheses and may contain any character.
		if !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false, nil
		}
	}
	return true, nil
}
