package localplane

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBinaries_AssetsVariableWithAllNeededPrograms(t *testing.T) {
	folder := fakePrograms(t, t.TempDir(), etcdName, apiServerName, controllerManagerName)
	t.Setenv(assetsVariable, folder)
	var out bytes.Buffer
	got, err := Binaries(t.Context(), Options{Progress: &out})
	require.NoError(t, err)
	require.Equal(t, folder, got)
	line := "muster: control planes use etcd, kube-apiserver, kube-controller-manager from " +
		folder + " (KUBEBUILDER_ASSETS)\n"
	require.Equal(t, line, out.String())
	_, err = Binaries(t.Context(), Options{Progress: &out})
	require.NoError(t, err)
	require.Equal(t, line, out.String(), "printed once per process")

	t.Chdir(filepath.Dir(folder))
	t.Setenv(assetsVariable, filepath.Base(folder))
	got, err = Binaries(t.Context(), Options{Progress: &out})
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(got), "components run in another working directory: %s", got)
}

func TestBinaries_AssetsVariableIsNoFolder(t *testing.T) {
	t.Setenv(assetsVariable, filepath.Join(t.TempDir(), "misspelled"))
	_, err := Binaries(t.Context(), Options{})
	require.EqualError(t, err, "KUBEBUILDER_ASSETS="+os.Getenv(assetsVariable)+
		" is not a folder: correct it, or unset KUBEBUILDER_ASSETS to have all programs built once")
	_, err = Start(t.Context(), Options{Name: "hub"})
	require.ErrorContains(t, err, "start plane hub: KUBEBUILDER_ASSETS=")
}

func TestComplete_OnlyMissingProgramsAreBuilt(t *testing.T) {
	for _, c := range []struct {
		name      string
		given     []string
		nodes     int
		built     string // the suffix of the name of the folder with the built programs
		links     map[string]string
		reported  string
		notLinked []string
	}{
		{
			name:  "nothing is installed",
			built: "", links: map[string]string{etcdName: "built", kwokName: "built"},
			reported: "etcd, kube-apiserver, kube-controller-manager from BUILT (built, Kubernetes " + kubernetesVersion + ")",
		},
		{
			name: "the programs of setup-envtest are installed", given: []string{etcdName, apiServerName}, nodes: 1,
			built: "", links: map[string]string{
				etcdName: "given", apiServerName: "given",
				controllerManagerName: "built", schedulerName: "built", kwokName: "built",
			},
			reported: "etcd, kube-apiserver from GIVEN (test); " +
				"kube-controller-manager, kube-scheduler, kwok from BUILT (built, Kubernetes " + kubernetesVersion + ")",
		},
		{
			name: "all programs except kwok are installed", given: programs[:4], nodes: 1,
			built: "-kwok", links: map[string]string{etcdName: "given", schedulerName: "given", kwokName: "built"},
			reported: "etcd, kube-apiserver, kube-controller-manager, kube-scheduler from GIVEN (test); " +
				"kwok from BUILT (built, Kubernetes " + kubernetesVersion + ")",
		},
		{
			name: "only kwok is installed", given: []string{kwokName},
			built:    "-etcd-kube-apiserver-kube-controller-manager-kube-scheduler",
			links:    map[string]string{etcdName: "built", kwokName: "given"},
			reported: "etcd, kube-apiserver, kube-controller-manager from BUILT (built, Kubernetes " + kubernetesVersion + ")",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, cache := tinyModule("package main\n\nfunc main() {}\n"), t.TempDir()
			var given place
			if len(c.given) > 0 {
				given = newPlace(fakePrograms(t, t.TempDir(), c.given...), "test")
			}
			var out bytes.Buffer
			opts := Options{Nodes: c.nodes, Progress: &out}
			folder, err := complete(t.Context(), opts, given, source, cache)
			require.NoError(t, err)
			require.Empty(t, missing(folder, opts.needed()))

			key, err := buildKey(source)
			require.NoError(t, err)
			built := filepath.Join(cache, "muster", "controlplane", key+c.built)
			require.DirExists(t, built)
			for program, from := range c.links {
				data, err := os.ReadFile(filepath.Join(folder, program))
				require.NoError(t, err)
				require.Equal(t, from == "given", string(data) == fakeProgram, "%s is %s", program, from)
			}
			want := strings.NewReplacer("GIVEN", given.folder, "BUILT", built).Replace(c.reported)
			require.Contains(t, out.String(), "\nmuster: control planes use "+want+"\n")

			out.Reset()
			again, err := complete(t.Context(), opts, given, source, cache)
			require.NoError(t, err)
			require.Equal(t, folder, again)
			require.Empty(t, out.String(), "nothing is built again")
		})
	}
}

func TestComplete_AProgramThatIsRemovedIsReplaced(t *testing.T) {
	source, cache := tinyModule("package main\n\nfunc main() {}\n"), t.TempDir()
	assets := fakePrograms(t, t.TempDir(), etcdName, apiServerName)
	opts := Options{Progress: &bytes.Buffer{}}
	_, err := complete(t.Context(), opts, newPlace(assets, "test"), source, cache)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(assets, etcdName)))
	folder, err := complete(t.Context(), opts, newPlace(assets, "test"), source, cache)
	require.NoError(t, err)
	require.Empty(t, missing(folder, programs), "each link has a target")
}

func TestNewestEnvtest(t *testing.T) {
	platform := "-" + runtime.GOOS + "-" + runtime.GOARCH
	for _, c := range []struct {
		name      string
		installed []string
		empty     string
		want      string
	}{
		{name: "no installed version"},
		{
			name:      "the newest patch version, compared as a number",
			installed: []string{"1.36.2", "1.36.10", "1.36.9"}, want: "1.36.10",
		},
		{name: "other minor versions are not used", installed: []string{"1.35.9", "1.36.0", "1.37.0"}, want: "1.36.0"},
		{name: "only other minor versions", installed: []string{"1.35.9", "1.37.0"}},
		{name: "a folder without programs is not used", installed: []string{"1.36.0"}, empty: "1.36.1", want: "1.36.0"},
		{name: "a folder whose name is no version", installed: []string{"latest"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "k8s")
			for _, name := range c.installed {
				fakePrograms(t, filepath.Join(store, name+platform), etcdName, apiServerName)
				fakePrograms(t, filepath.Join(store, name+".99-plan9-mips"), etcdName, apiServerName)
			}
			if c.empty != "" {
				fakePrograms(t, filepath.Join(store, c.empty+platform))
			}
			got := newestEnvtest(store)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, place{
				folder: filepath.Join(store, c.want+platform), origin: "setup-envtest",
				programs: []string{etcdName, apiServerName},
			}, got)
		})
	}
}

func TestFindReadyMade_Order(t *testing.T) {
	home, data, assets := t.TempDir(), t.TempDir(), fakePrograms(t, t.TempDir(), etcdName)
	name := kubernetesVersion[1:] + "-" + runtime.GOOS + "-" + runtime.GOARCH
	byDefault := filepath.Join(home, ".local/share/kubebuilder-envtest/k8s", name)
	if runtime.GOOS == "darwin" {
		byDefault = filepath.Join(home, "Library/Application Support/io.kubebuilder.envtest/k8s", name)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv(assetsVariable, "")
	requireFound := func(folder string) {
		t.Helper()
		got, err := findReadyMade()
		require.NoError(t, err)
		require.Equal(t, folder, got.folder)
	}
	requireFound("")
	fakePrograms(t, byDefault, etcdName)
	requireFound(byDefault)
	if runtime.GOOS != "darwin" {
		t.Setenv("XDG_DATA_HOME", data)
		requireFound("")
		requireFound("")
		byVariable := fakePrograms(t, filepath.Join(data, "kubebuilder-envtest/k8s", name), etcdName)
		requireFound(byVariable)
	}
	t.Setenv(assetsVariable, assets)
	requireFound(assets)
}

// limited is a testing.TB with a deadline.
type limited struct {
	testing.TB
	deadline time.Time
}

func (l limited) Deadline() (time.Time, bool) { return l.deadline, !l.deadline.IsZero() }

func TestBeforeTimeout(t *testing.T) {
	deadline := time.Now().Add(timeoutMargin / 2)
	ctx, cancel := beforeTimeout(limited{deadline: deadline})
	defer cancel()
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), errTimeout)

	source := tinyModule("package main\n\nfunc main() {}\n")
	_, err := complete(ctx, Options{Progress: &bytes.Buffer{}}, place{}, source, t.TempDir())
	require.ErrorIs(t, err, errTimeout)
	require.ErrorContains(t, err, "ends at "+deadline.Format(time.TimeOnly)+
		": run go test with -timeout=40m; it continues the build")

	for _, unlimited := range []testing.TB{limited{}, &testing.B{}, nil} {
		ctx, cancel := beforeTimeout(unlimited)
		defer cancel()
		_, ends := ctx.Deadline()
		require.False(t, ends)
	}
}

func TestStartForTest_BuildEndsBeforeTheTimeout(t *testing.T) {
	t.Setenv(assetsVariable, t.TempDir()) // Neither this folder nor the cache contains programs.
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOCACHE", t.TempDir())
	_, err := startForTest(limited{deadline: time.Now().Add(timeoutMargin)}, Options{Progress: &bytes.Buffer{}})
	require.ErrorIs(t, err, errTimeout, "%v", err)
}

const fakeProgram = "#!/bin/sh\nexit 1\n"

// fakePrograms creates programs that do nothing in a folder.
func fakePrograms(t *testing.T, folder string, names ...string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(fakeProgram), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kubectl"), []byte(fakeProgram), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "not-executable"), nil, 0o644))
	return folder
}
