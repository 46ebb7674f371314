package e2e_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const modulePath = "github.com/muster-sdk/muster"

// TestGoGet creates a module that only runs "go get" and whose test starts a control plane. The go command receives
// muster from a module proxy, so the zip contains what a release contains: no nested module and no other file.
func TestGoGet(t *testing.T) {
	version, proxy := serveModule(t)
	product := t.TempDir()
	copyFile(t, filepath.Join("testdata", "goget", "plane_test.go.txt"), filepath.Join(product, "plane_test.go"))
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = product
		cmd.Env = append(os.Environ(),
			// -trimpath as in .ci/run and localplane, so that Go finds compiled packages in its cache.
			"GOFLAGS=-mod=mod -trimpath", "GOWORK=off",
			// No checksum database knows the version. An earlier run may have downloaded the same one.
			"GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=none", "GOPROXY="+proxy+","+goEnv(t, "GOPROXY"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
		return string(out)
	}
	run("mod", "init", "example.com/product")
	run("get", modulePath+"@"+version)
	require.Contains(t, run("test", "-v", "-count=1", "-timeout=30m", "."), "--- PASS: TestPlane")

	// Users copy the examples. musterctl is a module, and the copy requires the same versions of dependencies.
	examples := []string{"minimal-hub", "hub", "agent", "musterctl"}
	for _, name := range examples {
		copyExample(t, name, filepath.Join(product, name))
	}
	file := filepath.Join("..", "..", "examples", "musterctl", "go.mod")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	musterctl, err := modfile.Parse(file, data, nil)
	require.NoError(t, err)
	get := []string{"get"}
	for _, require := range musterctl.Require {
		if !require.Indirect && require.Mod.Path != modulePath {
			get = append(get, require.Mod.String())
		}
	}
	run(get...)
	run("mod", "tidy")
	programs := cmp.Or(os.Getenv(programsVariable), t.TempDir())
	for _, name := range examples {
		run("build", "-o", filepath.Join(programs, name), "./"+name)
	}
}

// programsVariable names the environment variable with the folder for the programs that TestGoGet builds. The tests of
// internal/charts run the programs of this folder instead of their own.
const programsVariable = "MUSTER_PROGRAMS"

// copyExample copies the source code of an example into a folder that it creates.
func copyExample(t *testing.T, name, folder string) {
	t.Helper()
	require.NoError(t, os.Mkdir(folder, 0o755))
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", name, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			copyFile(t, file, filepath.Join(folder, filepath.Base(file)))
		}
	}
}

// serveModule packs the working tree as a module proxy packs a release. It returns the version and the URL of a proxy.
func serveModule(t *testing.T) (version, proxy string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	packed := filepath.Join(t.TempDir(), "zip")
	file, err := os.Create(packed)
	require.NoError(t, err)
	// The version contains a hash of the content, so that the go command never uses another content from its cache.
	require.NoError(t, zip.CreateFromDir(file, module.Version{Path: modulePath, Version: "v0.0.0"}, root))
	require.NoError(t, file.Close())
	data, err := os.ReadFile(packed)
	require.NoError(t, err)
	hash := sha256.Sum256(data)
	version = module.PseudoVersion("v0", "", time.Unix(0, 0).UTC(), hex.EncodeToString(hash[:])[:12])

	folder := t.TempDir()
	versions := filepath.Join(folder, filepath.FromSlash(modulePath), "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	file, err = os.Create(filepath.Join(versions, version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromDir(file, module.Version{Path: modulePath, Version: version}, root))
	require.NoError(t, file.Close())
	copyFile(t, filepath.Join(root, "go.mod"), filepath.Join(versions, version+".mod"))
	info := fmt.Sprintf(`{"Version":%q,"Time":"1970-01-01T00:00:00Z"}`, version)
	require.NoError(t, os.WriteFile(filepath.Join(versions, version+".info"), []byte(info), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(versions, "list"), []byte(version+"\n"), 0o600))
	cache := goEnv(t, "GOMODCACHE")
	t.Cleanup(func() { removeDownload(t, cache, version) })
	return version, (&url.URL{Scheme: "file", Path: folder}).String()
}

// removeDownload removes a version of muster from the cache of modules, whose folders are read-only.
func removeDownload(t *testing.T, cache, version string) {
	t.Helper()
	extracted := filepath.Join(cache, filepath.FromSlash(modulePath)+"@"+version)
	err := filepath.WalkDir(extracted, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	require.NoError(t, os.RemoveAll(extracted))
	downloads, err := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(modulePath), "@v",
		version+".*"))
	require.NoError(t, err)
	for _, download := range downloads {
		require.NoError(t, os.Remove(download))
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}
