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
	// stepTimeout is how long one command may take.
	stepTimeout = 5 * time.Minute
	// againAfter is how long a command that is to be tried again is not.
	againAfter = time.Second
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

// call runs a program to its end, and returns what it says.
func call(t *testing.T, program string, args ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	t.Logf("$ %s %s\n%s", filepath.Base(program), strings.Join(args, " "), out)
	return string(out), err
}

// background is a program that runs beside the test.
type background struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended

	mu   sync.Mutex
	said bytes.Buffer
}

// Write takes down what the program says.
func (b *background) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said.Write(text)
}

func (b *background) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said.String()
}

// start runs a program with more in its environment until the test is over, at the longest.
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
			t.Logf("%s has said:\n%s", filepath.Base(program), b)
		}
	})
	return b
}

// interrupt ends the program in good order, or else at once.
func (b *background) interrupt(t *testing.T) {
	t.Helper()
	_ = b.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	select {
	case <-b.ended:
	case <-time.After(time.Minute):
		t.Errorf("%s does not end when it is interrupted", b.cmd.Path)
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
}
