package localplane

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
)

// assetsVariable is the environment variable that names a folder with binaries, as for envtest of controller-runtime.
const assetsVariable = "KUBEBUILDER_ASSETS"

// A place is a folder with programs.
type place struct {
	folder   string
	origin   string
	programs []string // the programs to use from the folder, in the order of programs
}

// findReadyMade returns the folder in which the user has installed programs. It returns the zero value if there is
// none.
func findReadyMade() (place, error) {
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		return findEnvtest(), nil
	}
	folder, err := filepath.Abs(assets) // Components run in another working directory.
	if err != nil {
		return place{}, fmt.Errorf("find %s=%s: %w", assetsVariable, assets, err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return place{}, fmt.Errorf("%s=%s is not a folder: correct it, or unset %[1]s to have all programs built once",
			assetsVariable, assets)
	}
	return newPlace(folder, assetsVariable), nil
}

func newPlace(folder, origin string) place {
	absent := missing(folder, programs)
	there := slices.DeleteFunc(slices.Clone(programs), func(p string) bool { return slices.Contains(absent, p) })
	return place{folder: folder, origin: origin, programs: there}
}

// findEnvtest returns the newest installation by setup-envtest with the minor version of kubernetesVersion. A
// kube-controller-manager must not be newer than its kube-apiserver, and results should not depend on other installed
// versions.
func findEnvtest() place {
	data, store := os.Getenv("XDG_DATA_HOME"), "kubebuilder-envtest"
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return place{}
	case runtime.GOOS == "darwin":
		data, store = filepath.Join(home, "Library", "Application Support"), "io.kubebuilder.envtest"
	case data == "":
		data = filepath.Join(home, ".local", "share")
	}
	return newestEnvtest(filepath.Join(data, store, "k8s"))
}

// newestEnvtest returns the newest matching installation in a folder whose subfolders are named VERSION-OS-ARCH.
func newestEnvtest(store string) place {
	installed, err := os.ReadDir(store)
	if err != nil {
		return place{} // Most users do not have setup-envtest.
	}
	pinned := version.MustParseSemantic(kubernetesVersion)
	var newest *version.Version
	var found place
	for _, entry := range installed {
		name, matches := strings.CutSuffix(entry.Name(), "-"+runtime.GOOS+"-"+runtime.GOARCH)
		if !matches {
			continue
		}
		candidate, err := version.ParseSemantic(name)
		if err != nil || candidate.Major() != pinned.Major() || candidate.Minor() != pinned.Minor() {
			continue
		}
		if newest != nil && candidate.LessThan(newest) {
			continue
		}
		if p := newPlace(filepath.Join(store, entry.Name()), "setup-envtest"); len(p.programs) > 0 {
			newest, found = candidate, p
		}
	}
	return found
}

// reported contains the lines that report has printed.
var reported sync.Map

// report prints the origin of the programs, once per process for equal origins.
func report(opts Options, places ...place) {
	var parts []string
	for _, p := range places {
		used := slices.DeleteFunc(slices.Clone(p.programs), func(program string) bool {
			return !slices.Contains(opts.needed(), program)
		})
		if len(used) == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s from %s (%s)", strings.Join(used, ", "), p.folder, p.origin))
	}
	line := "muster: control planes use " + strings.Join(parts, "; ")
	if _, before := reported.LoadOrStore(line, nil); before {
		return
	}
	var out io.Writer = os.Stderr
	if opts.Progress != nil {
		out = opts.Progress
	}
	_, _ = fmt.Fprintln(out, line)
}
