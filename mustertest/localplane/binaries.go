package localplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs are all programs that a plane can consist of, in the order of their start.
var programs = []string{etcdName, apiServerName, controllerManagerName, schedulerName, kwokName}

// needed returns the programs that a plane with these options requires.
func (o Options) needed() []string {
	if o.Nodes > 0 {
		return programs
	}
	return programs[:3]
}

// Binaries returns a folder with the programs that a plane with these options needs. It looks for each program in these
// places, in this order:
//
//   - the folder that KUBEBUILDER_ASSETS names, or if the variable is not set, the newest installation by setup-envtest
//     of the Kubernetes minor version that this package builds;
//   - a folder in the user's cache. Binaries first builds the programs that are missing there. The first build takes
//     minutes and needs a network; opts.Progress receives its progress. One process builds while other processes wait
//     for it.
//
// envtest contains only etcd and kube-apiserver. The returned folder then has links to programs of both places.
// Binaries prints to opts.Progress, or to os.Stderr, which programs it returns and their origin, once per process. The
// context limits the build and the wait.
//
// Start calls Binaries. Call Binaries before Start to build the programs at a more convenient time.
func Binaries(ctx context.Context, opts Options) (string, error) {
	given, err := findReadyMade()
	if err != nil {
		return "", err
	}
	if given.folder != "" && len(missing(given.folder, opts.needed())) == 0 {
		report(opts, given)
		return given.folder, nil
	}
	source, err := embeddedSource()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache for control plane binaries (or set %s): %w", assetsVariable, err)
	}
	return complete(ctx, opts, given, source, cache)
}

// complete takes the programs that the given place lacks from the cache. It builds those that are not in the cache.
func complete(ctx context.Context, opts Options, given place, source fs.FS, cache string) (string, error) {
	key, err := buildKey(source)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "muster", "controlplane", key)
	built := place{origin: "built, Kubernetes " + kubernetesVersion, programs: programs}
	built.folder, err = buildMissing(ctx, source, folder, missing(given.folder, programs), opts.Progress)
	if err != nil {
		return "", fmt.Errorf("build the control plane binaries: %w", err)
	}
	if len(given.programs) == 0 {
		report(opts, built)
		return built.folder, nil
	}
	folder, err = combine(ctx, folder, given, built)
	if err != nil {
		return "", fmt.Errorf("combine the binaries of %s with those of %s: %w", given.folder, built.folder, err)
	}
	built.programs = missing(given.folder, opts.needed())
	report(opts, given, built)
	return folder, nil
}

// buildMissing builds the absent programs unless they are in the cache. It returns the folder that contains them.
func buildMissing(ctx context.Context, source fs.FS, folder string, absent []string, out io.Writer) (string, error) {
	if len(missing(folder, programs)) == 0 {
		return folder, nil
	}
	if len(packagesOf(absent)) == len(packages) {
		absent = programs // The build produces all of them anyway, and the folder is then usable without the ready-made ones.
	} else {
		folder += "-" + strings.Join(absent, "-")
	}
	return folder, fillOnce(ctx, folder, absent, out, func(ctx context.Context, partial string, show *display) error {
		return build(ctx, source, partial, absent, show)
	})
}

// combine creates a folder with links to the programs of the first place, and to the programs of the second place that
// the first one lacks.
func combine(ctx context.Context, prefix string, first, second place) (string, error) {
	hash := sha256.Sum256([]byte(strings.Join(append([]string{first.folder, second.folder}, first.programs...), "\n")))
	folder := prefix + "-with-" + hex.EncodeToString(hash[:])[:16]
	absent := missing(second.folder, programs)
	there := slices.DeleteFunc(slices.Clone(programs), func(program string) bool {
		return slices.Contains(absent, program) && !slices.Contains(first.programs, program)
	})
	if len(missing(folder, there)) == 0 {
		return folder, nil
	}
	return folder, fillOnce(ctx, folder, there, io.Discard, func(_ context.Context, partial string, _ *display) error {
		for _, program := range there {
			target := second.folder
			if slices.Contains(first.programs, program) {
				target = first.folder
			}
			if err := os.Symlink(filepath.Join(target, program), filepath.Join(partial, program)); err != nil {
				return err
			}
		}
		return nil
	})
}

// missing returns the programs that are not executable files in the folder.
func missing(folder string, programs []string) []string {
	if folder == "" {
		return programs
	}
	var absent []string
	for _, program := range programs {
		info, err := os.Stat(filepath.Join(folder, program))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			absent = append(absent, program)
		}
	}
	return absent
}
