package localplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startScript runs a shell script as a component.
func startScript(t *testing.T, script string) *process {
	t.Helper()
	verifyNoLeaks(t)
	folder := t.TempDir()
	w, err := startWatchdog(filepath.Join(folder, "guarded"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.close()) })
	program := filepath.Join(folder, "component")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	p, err := startProcess(w, program, folder, filepath.Join(folder, "log"), []string{"two words", "*"})
	require.NoError(t, err)
	t.Cleanup(p.kill)
	return p
}

func TestProcessGetsItsArgumentsAndNothingElse(t *testing.T) {
	t.Setenv("ETCD_NAME", "of the user")
	p := startScript(t, `printf '%s|' "$@"; echo "[$ETCD_NAME]"; cat`)
	<-p.exited
	require.NoError(t, p.err, "stdin is at its end")
	require.Equal(t, "\ttwo words|*|[]", p.tail())
}

func TestProcessEnded(t *testing.T) {
	runs := startScript(t, "trap '' TERM; echo up; while :; do sleep 0.01; done")
	waitForLog(t, runs, "up")
	require.NoError(t, runs.ended())
	runs.kill()
	require.ErrorContains(t, runs.ended(), "component: ended by itself (signal: killed)")

	ended := startScript(t, "echo bye; exit 7")
	<-ended.exited
	require.EqualError(t, ended.ended(), "component: ended by itself (exit status 7); the end of its log:\n\tbye")
}

func TestProcessWaitUntil(t *testing.T) {
	notYet := errors.New("not yet")
	p := startScript(t, "echo up; exec sleep 1000")
	waitForLog(t, p, "up")
	calls := 0
	require.NoError(t, p.waitUntil(t.Context(), "the third call", func(context.Context) error {
		if calls++; calls < 3 {
			return notYet
		}
		return nil
	}))

	ctx, cancel := context.WithCancelCause(t.Context())
	err := p.waitUntil(ctx, "good weather", func(ctx context.Context) error {
		cancel(errors.New("waited enough"))
		return notYet
	})
	require.EqualError(t, err,
		"component: waited for good weather: waited enough (still running); the end of its log:\n\tup")

	calls = 0
	ctx, cancel = context.WithCancelCause(t.Context())
	err = p.waitUntil(ctx, "good weather", func(ctx context.Context) error {
		if calls++; calls == 2 {
			cancel(errors.New("waited enough"))
			return ctx.Err()
		}
		return notYet
	})
	require.ErrorContains(t, err, "waited enough (last answer: not yet)",
		"the error contains the last result before the end of the context")
}

// TestProcessFailure_Transient checks the failures after which Start retries: a port in use and a panic, but
// not an error of the component.
func TestProcessFailure_Transient(t *testing.T) {
	for output, want := range map[string]bool{
		"listen tcp 127.0.0.1:20001: bind: address already in use": true,
		"goroutine 7 [running]: panic(0x1) runtime/panic.go:860":   true,
		"unknown flag: --panic":                                    false,
	} {
		p := startScript(t, "echo '"+output+"'; exit 2")
		<-p.exited
		require.Equal(t, want, errors.As(p.failure(errors.New("ended")), new(*transientError)), output)
	}
}

// TestWatchdog_KillsOnlyRegisteredProcesses checks that the watchdog does not kill a deregistered process. After a
// process was reaped, its PID may be reused.
func TestWatchdog_KillsOnlyRegisteredProcesses(t *testing.T) {
	bystander := startScript(t, "exec sleep 1000")
	victim := startScript(t, "exec sleep 1000")
	folder := filepath.Join(t.TempDir(), "has a space")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "sub"), 0o755))
	w, err := startWatchdog(folder)
	require.NoError(t, err)
	require.NoError(t, w.register(bystander.cmd.Process.Pid))
	require.NoError(t, w.register(victim.cmd.Process.Pid))
	require.NoError(t, w.deregister(bystander.cmd.Process.Pid))
	require.NoError(t, w.close())
	select {
	case <-victim.exited:
	case <-time.After(eventually):
		t.Fatal("the watchdog does not kill a registered process")
	}
	require.NoDirExists(t, folder)
	require.True(t, alive(bystander.cmd.Process.Pid))
}

func waitForLog(t *testing.T, p *process, line string) {
	t.Helper()
	require.Eventually(t, func() bool { return p.tail() == "\t"+line }, eventually, tick)
}
