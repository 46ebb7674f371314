package localplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// kubernetesVersion is the version that the build sets in the binaries, because a plain "go build" leaves
// v0.0.0-master. It is the version of k8s.io/kubernetes in the nested go.mod.
const kubernetesVersion = "v1.36.3"

// multiCall is one executable that acts as each of the first four programs, depending on the name under which it is
// called. It is always built as a whole: kube-controller-manager alone imports 95 % of its packages.
const multiCall = "controlplane"

// packages are the main packages of the build. kwok cannot be part of multiCall, because the libraries of both define a
// flag "version".
var packages = []string{".", "sigs.k8s.io/kwok/cmd/kwok"}

// packagesOf returns the main packages that must be built for the wanted programs.
func packagesOf(wanted []string) []string {
	switch {
	case !slices.Contains(wanted, kwokName):
		return packages[:1]
	case len(wanted) == 1:
		return packages[1:]
	default:
		return packages
	}
}

var buildFlags = []string{
	"-trimpath",
	"-buildvcs=false",
	"-ldflags=-s -w" +
		" -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion +
		" -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=36",
}

// fillOnce creates a folder that contains the programs. If several processes or calls need the folder at the same time,
// one of them fills it and the others wait. The folder appears only when it is complete. A crash leaves a folder with
// another name, which the next call removes.
func fillOnce(ctx context.Context, folder string, programs []string, out io.Writer,
	fill func(ctx context.Context, partial string, show *display) error,
) error {
	if len(missing(folder, programs)) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	lock, err := waitForLock(ctx, folder+".lock", programs, out)
	if err != nil {
		return err
	}
	defer lock.Close() // Nothing is written to the file, so an error of Close has no effect.
	if len(missing(folder, programs)) == 0 {
		return nil // Another call has created the folder in the meantime.
	}

	leftovers, err := filepath.Glob(folder + ".partial-*")
	if err != nil {
		return err
	}
	for _, leftover := range append(leftovers, folder) {
		if err := os.RemoveAll(leftover); err != nil {
			return err
		}
	}
	partial, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial) // If this fails, the next build removes the folder.

	if out == nil {
		terminal, done := openTerminal()
		defer done()
		out = terminal
	}
	show := startDisplay(out, "building "+strings.Join(programs, ", ")+" once, into "+folder, "building")
	err = fill(ctx, partial, show)
	show.end(err)
	if err != nil {
		return err
	}
	return os.Rename(partial, folder)
}

// waitForLock locks a file and returns it. Closing the file releases the lock. While waitForLock waits, it displays the
// names of the programs.
func waitForLock(ctx context.Context, path string, programs []string, out io.Writer) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(file)
	if err == nil && !locked {
		if out == nil {
			out = os.Stderr // The process that builds uses the terminal.
		}
		show := startDisplay(out, "another process builds "+strings.Join(programs, ", "), "waiting for it")
		err = pollLock(ctx, file)
		show.end(err)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

func pollLock(ctx context.Context, file *os.File) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if locked, err := tryLock(file); err != nil || locked {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// build compiles the packages of the nested module that the programs need, and links the programs to the results. It
// extracts the module to a temporary folder below the given folder.
func build(ctx context.Context, module fs.FS, folder string, programs []string, show *display) error {
	source := filepath.Join(folder, "source")
	if err := os.CopyFS(source, module); err != nil {
		return fmt.Errorf("extract the sources to %s: %w", source, err)
	}
	defer os.RemoveAll(source) // If this fails, the folder contains the sources too.
	packages := packagesOf(programs)
	total, err := countStale(ctx, source, packages, show)
	if err != nil {
		return err
	}
	done := 0
	show.update(fmt.Sprintf("0 of %d packages", total))
	args := append([]string{"build", "-v", "-o", folder + string(filepath.Separator)}, buildFlags...)
	if err := runGo(ctx, source, append(args, packages...), io.Discard, func(line string) {
		if isPackage(line) {
			done = min(done+1, total)
			show.update(fmt.Sprintf("%d of %d packages", done, total))
		}
	}); err != nil {
		return fmt.Errorf("%w (%d of %d packages were compiled, which the next build goes on from)", err, done, total)
	}
	for _, program := range programs {
		if program == kwokName {
			continue
		}
		if err := os.Symlink(multiCall, filepath.Join(folder, program)); err != nil {
			return err
		}
	}
	if absent := missing(folder, programs); len(absent) > 0 {
		return fmt.Errorf("go build made no %s", strings.Join(absent, ", "))
	}
	return nil
}

// isPackage reports whether a line of "go build -v" is the path of a package whose compilation begins. All other lines
// contain spaces.
func isPackage(line string) bool { return !strings.Contains(line, " ") }

// countStale returns the number of packages that are not in Go's build cache. It downloads missing modules.
func countStale(ctx context.Context, source string, packages []string, show *display) (int, error) {
	var stale strings.Builder
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, buildFlags...)
	modules := 0
	show.update("counting packages")
	err := runGo(ctx, source, append(args, packages...), &stale, func(line string) {
		if strings.HasPrefix(line, "go: downloading") {
			modules++
			show.update(fmt.Sprintf("%d modules downloaded", modules))
		}
	})
	return len(strings.Fields(stale.String())), err
}

// runGo runs the go command in the nested module and passes each line of its stderr to onLine. The returned error
// contains the last lines.
func runGo(ctx context.Context, source string, args []string, stdout io.Writer, onLine func(string)) error {
	// A user's GOFLAGS may contain -mod=vendor, and a user's go.work does not contain the nested module. The binaries run
	// on this machine, even if the user builds for another platform.
	cmd := exec.CommandContext(ctx, "go", slices.Insert(slices.Clone(args), 1, "-mod=readonly")...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout = stdout
	// On an interrupt, go stops its compilers and removes its temporary files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	reader, writer := io.Pipe()
	cmd.Stderr = writer

	var last []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			onLine(lines.Text())
			if isPackage(lines.Text()) {
				continue
			}
			if last = append(last, lines.Text()); len(last) > tailLines {
				last = last[1:]
			}
		}
		_, _ = io.Copy(io.Discard, reader) // A line that is too long for the scanner must not block the build.
	}()
	err := cmd.Run()
	_ = writer.Close()
	<-read
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	err = fmt.Errorf("go %s in %s: %w", args[0], source, err)
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w; install Go, or set %s", err, assetsVariable)
	}
	return fmt.Errorf("%w\n\t%s", err, strings.Join(last, "\n\t"))
}
