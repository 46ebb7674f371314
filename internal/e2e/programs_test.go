package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// stepTimeout is the timeout of one command.
	stepTimeout = 5 * time.Minute
	// retryPeriod is the time between two attempts of a command.
	retryPeriod = time.Second
)

// build builds a program of the examples, each in its own module.
func build(t *testing.T, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("..", "..", "examples", name)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// call runs a program to its end, and returns its output.
func call(t *testing.T, program string, args ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	t.Logf("$ %s %s\n%s", filepath.Base(program), strings.Join(args, " "), out)
	return string(out), err
}

// background is a program that runs during the test.
type background struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended

	mu     sync.Mutex
	output bytes.Buffer
}

// Write records output of the program.
func (b *background) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.output.Write(text)
}

func (b *background) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.output.String()
}

// start runs a program with additional environment variables, at the longest until the test ends.
func start(t *testing.T, env []string, program string, args ...string) *background {
	t.Helper()
	b := &background{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	b.cmd.Env = append(os.Environ(), env...)
	b.cmd.Stdout, b.cmd.Stderr = b, b
	require.NoError(t, b.cmd.Start())
	go func() {
		defer close(b.ended)
		b.err = b.cmd.Wait()
	}()
	t.Cleanup(func() {
		b.interrupt(t)
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(program), b)
		}
	})
	return b
}

// interrupt ends the program by an interrupt, or kills the program if it does not end.
func (b *background) interrupt(t *testing.T) {
	t.Helper()
	_ = b.cmd.Process.Signal(syscall.SIGINT) // The program may have ended.
	select {
	case <-b.ended:
	case <-time.After(time.Minute):
		t.Errorf("%s does not end when it is interrupted", b.cmd.Path)
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
}
