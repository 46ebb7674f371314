package localplane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFillOnce_ConcurrentCalls(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cache", "key")
	const callers = 8
	var fills atomic.Int32
	waiting := make(chan struct{}, callers)
	ctx, cancel := context.WithTimeout(t.Context(), eventually)
	defer cancel()
	fill := func(ctx context.Context, partial string, _ *display) error {
		fills.Add(1)
		for range callers - 1 { // All other calls have found the folder empty.
			select {
			case <-waiting:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return writePrograms(partial)
	}
	out := writerFunc(func(text string) {
		if strings.Contains(text, "another process builds") {
			waiting <- struct{}{}
		}
	})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if err := fillOnce(ctx, folder, programs, out, fill); err != nil {
				t.Error(err)
			}
			if absent := missing(folder, programs); len(absent) > 0 {
				t.Errorf("missing: %v", absent)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), fills.Load())

	require.NoError(t, os.Remove(filepath.Join(folder, etcdName)))
	for range callers - 1 {
		waiting <- struct{}{}
	}
	require.NoError(t, fillOnce(ctx, folder, programs, out, fill))
	require.Equal(t, int32(2), fills.Load(), "a damaged folder is filled again")
}

type writerFunc func(text string)

func (f writerFunc) Write(data []byte) (int, error) {
	f(string(data))
	return len(data), nil
}

// fillVariable makes a child process of TestFillOnce_ConcurrentProcesses fill the folder that the variable names.
const fillVariable = "MUSTER_TEST_FILL"

func TestFillOnce_ConcurrentProcesses(t *testing.T) {
	if folder := os.Getenv(fillVariable); folder != "" {
		require.NoError(t, fillOnce(t.Context(), folder, programs, io.Discard, func(_ context.Context, partial string,
			_ *display) error {
			log, err := os.OpenFile(folder+".fills", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			_, err = io.WriteString(log, "x")
			require.NoError(t, errors.Join(err, log.Close(), writePrograms(partial)))
			return nil
		}))
		return
	}
	folder := filepath.Join(t.TempDir(), "key")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			child := exec.Command(os.Args[0], "-test.run=^TestFillOnce_ConcurrentProcesses$")
			child.Env = append(os.Environ(), fillVariable+"="+folder)
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	fills, err := os.ReadFile(folder + ".fills")
	require.NoError(t, err)
	require.Equal(t, "x", string(fills))
}

func TestFillOnce_RemovesPartialFolders(t *testing.T) {
	parent := t.TempDir()
	folder := filepath.Join(parent, "key")
	broken := errors.New("no space left")
	require.ErrorIs(t, fillOnce(t.Context(), folder, programs, io.Discard, func(_ context.Context, partial string,
		_ *display) error {
		return errors.Join(writePrograms(partial), broken)
	}), broken)
	require.NoDirExists(t, folder)

	crashed := folder + ".partial-123"
	require.NoError(t, os.Mkdir(crashed, 0o755))
	require.NoError(t, fillOnce(t.Context(), folder, programs, io.Discard, func(_ context.Context, partial string,
		_ *display) error {
		return writePrograms(partial)
	}))
	require.Equal(t, []string{folder, folder + ".lock"}, entries(t, parent), "the folder of a crashed process is removed")
}

func TestWaitingForALockIsShownAndEndsWithTheContext(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "key")
	lock, err := waitForLock(t.Context(), folder+".lock", programs, nil)
	require.NoError(t, err)
	defer lock.Close()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("the test waits no longer"))
	defer cancel()
	err = fillOnce(ctx, folder, programs, &out, nil)
	require.ErrorContains(t, err, "the test waits no longer")
	require.Contains(t, out.String(), "another process builds etcd, kube-apiserver")
}

// TestBuild_CreatesPrograms runs the real build on a module with tiny programs. The module has the same two packages at
// the same paths.
func TestBuild_CreatesPrograms(t *testing.T) {
	source := tinyModule("package main\n\nfunc main() {}\n")
	folder := t.TempDir()
	var out bytes.Buffer
	show := startDisplay(&out, "building", "building")
	err := build(t.Context(), source, folder, programs, show)
	show.end(err)
	require.NoError(t, err)
	require.Empty(t, missing(folder, programs))
	target, err := os.Readlink(filepath.Join(folder, etcdName))
	require.NoError(t, err)
	require.Equal(t, multiCall, target)
	require.NoDirExists(t, filepath.Join(folder, "source"), "the sources are removed after the build")
	require.Contains(t, out.String(), "done")
}

func TestBuild_ReportsCompilerErrors(t *testing.T) {
	source := tinyModule("package main\n\nfunc main() { undefined() }\n")
	show := startDisplay(io.Discard, "", "")
	folder := t.TempDir()
	err := build(t.Context(), source, folder, programs, show)
	show.end(err)
	require.ErrorContains(t, err, "undefined: undefined")
	require.ErrorContains(t, err, "go build in "+filepath.Join(folder, "source"))
	require.ErrorContains(t, err, "(1 of 2 packages were compiled")
	require.NotContains(t, err.Error(), "\texample.com/controlplane\n", "progress is not part of the error")
}

func TestBuild_EndsWithTheContext(t *testing.T) {
	source := tinyModule("package main\n\nfunc main() {}\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("changed my mind"))
	show := startDisplay(io.Discard, "", "")
	err := build(ctx, source, t.TempDir(), programs, show)
	show.end(err)
	require.ErrorContains(t, err, "changed my mind")
}

func TestDisplayOffTerminal(t *testing.T) {
	var out bytes.Buffer
	show := startDisplay(&out, "building it all", "building")
	show.update("3 of 7 packages")
	show.draw()
	show.end(nil)
	require.Equal(t, "muster: building it all\nmuster: building, 0s, 3 of 7 packages\nmuster: building, 0s, done\n",
		out.String())
}

func TestDisplayOnTerminal(t *testing.T) {
	var out bytes.Buffer
	show := startDisplay(&out, "building it all", "building")
	show.inPlace = true
	show.update("3 of 7 packages")
	show.draw()
	show.end(errors.New("no"))
	_, drawn, _ := strings.Cut(out.String(), "\n")
	require.Equal(t, "\rmuster: building, 0s, 3 of 7 packages\x1b[K\rmuster: building, 0s, failed\x1b[K\n", drawn)
}

// writePrograms creates an executable file for each program in a folder.
func writePrograms(folder string) error {
	var errs []error
	for _, program := range programs {
		errs = append(errs, os.WriteFile(filepath.Join(folder, program), nil, 0o755))
	}
	return errors.Join(errs...)
}

// tinyModule returns a module that resembles the nested module as far as the build depends on it: a main package that
// becomes "controlplane", and one at the path of kwok.
func tinyModule(program string) fs.FS {
	module := fstest.MapFS{}
	for path, content := range map[string]string{
		"go.mod": "module example.com/" + multiCall + "\n\ngo 1.26\n\n" +
			"require sigs.k8s.io/kwok v0.0.0\n\nreplace sigs.k8s.io/kwok => ./kwok\n",
		"go.sum":                "",
		"main.go":               program,
		"kwok/go.mod":           "module sigs.k8s.io/kwok\n\ngo 1.26\n",
		"kwok/cmd/kwok/main.go": "package main\n\nfunc main() {}\n",
	} {
		module[path] = &fstest.MapFile{Data: []byte(content)}
	}
	return module
}
