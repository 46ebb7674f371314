package localplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// assetsVariable names the folder with the binaries, as it does for envtest of controller-runtime.
const assetsVariable = "KUBEBUILDER_ASSETS"

const (
	modulePath = "github.com/muster-sdk/muster"
	nestedPath = "internal/controlplane"
)

// programs are all that can be built, in the order of their start.
var programs = []string{etcdName, apiServerName, controllerManagerName, schedulerName, kwokName}

// needed returns the programs that a plane with these options consists of.
func (o Options) needed() []string {
	if o.Nodes > 0 {
		return programs
	}
	return programs[:3]
}

// Binaries returns the folder with the programs that a plane with these options needs. That is
// KUBEBUILDER_ASSETS, if set; it is an error if something is missing there. Else it is a folder in the
// user's cache, which is filled first if it is not there: this takes minutes and a network the first
// time, is reported to opts.Progress, and is done by one process while others wait for it. The context ends both.
//
// Start calls it. Call it before for the wait to come at a better moment.
func Binaries(ctx context.Context, opts Options) (string, error) {
	if assets := os.Getenv(assetsVariable); assets != "" {
		return givenBinaries(assets, opts.needed())
	}
	source, err := findSource(ctx)
	if err != nil {
		return "", err
	}
	key, err := buildKey(source)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache for control plane binaries (or set %s): %w", assetsVariable, err)
	}
	folder := filepath.Join(cache, "muster", "controlplane", key)
	err = fillOnce(ctx, folder, opts.Progress, func(ctx context.Context, partial string, show *display) error {
		return build(ctx, source, partial, show)
	})
	if err != nil {
		return "", fmt.Errorf("build the control plane binaries: %w", err)
	}
	return folder, nil
}

func givenBinaries(assets string, needed []string) (string, error) {
	folder, err := filepath.Abs(assets) // Components run in another working directory.
	if err != nil {
		return "", fmt.Errorf("find %s=%s: %w", assetsVariable, assets, err)
	}
	if absent := missing(folder, needed); len(absent) > 0 {
		return "", fmt.Errorf("%s=%s lacks %s: put them there, or unset %[1]s to have all of them built once",
			assetsVariable, assets, strings.Join(absent, ", "))
	}
	return folder, nil
}

// missing returns which of the programs are not executable files in the folder.
func missing(folder string, programs []string) []string {
	var absent []string
	for _, program := range programs {
		info, err := os.Stat(filepath.Join(folder, program))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			absent = append(absent, program)
		}
	}
	return absent
}

// findSource finds the nested module. The path of this file, known to the compiler, is right whatever the
// working directory is; under -trimpath it is no path, and "go list" is asked.
func findSource(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		source := filepath.Join(filepath.Dir(file), "..", filepath.Base(nestedPath))
		if isModule(source) {
			return source, nil
		}
	}
	return listSource(ctx)
}

func listSource(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("find the sources of the control plane binaries by %q (or set %s): %w", cmd, assetsVariable, err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), nestedPath)
	if !isModule(source) {
		// A module that is downloaded as a dependency comes without its nested modules.
		return "", fmt.Errorf("find the sources of the control plane binaries: %s is not there; run in a checkout of %s, or set %s",
			source, modulePath, assetsVariable)
	}
	return source, nil
}

func isModule(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil && info.Mode().IsRegular()
}

// buildKey is a hash of all that makes one build differ from another.
func buildKey(source string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("identify the control plane binaries: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	fmt.Fprintln(hash, buildFlags, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
