package localplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestStop_LeavesOnlyTheLogs(t *testing.T) {
	skipIfShort(t)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("planes", 0o755))
	const dir, logs = "planes", "logs"
	verifyNoLeaks(t)

	p, err := startForTest(t, Options{Name: "gone", Nodes: 1, Dir: dir, LogDir: logs})
	require.NoError(t, err, "relative paths are supported")
	pids := p.pids()
	require.Len(t, pids, 6, "five components and the watchdog")
	for name, pid := range pids {
		require.True(t, alive(pid), name)
	}
	require.Len(t, entries(t, dir), 1)

	began := time.Now()
	require.NoError(t, p.Stop())
	require.Less(t, time.Since(began), 10*time.Second)
	for name, pid := range pids {
		require.False(t, alive(pid), name)
	}
	require.Empty(t, entries(t, dir))
	data, err := os.ReadFile(filepath.Join(logs, "kube-apiserver.log"))
	require.NoError(t, err)
	require.NotEmpty(t, data)
	require.NoError(t, p.Stop(), "Stop may be called again")
	require.ErrorContains(t, p.StartAPIServer(t.Context()), "stopped")
	require.ErrorContains(t, p.KillAPIServer(), "not running")
}

func TestPlanesAreIndependent(t *testing.T) {
	other := ForTest(t, Options{Name: "other"})
	planes := []*Plane{shared.ForTest(t), other}
	for _, p := range planes {
		_, err := clientFor(t, p.Config()).CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-" + p.opts.Name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for i, p := range planes {
		list, err := clientFor(t, p.Config()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for _, namespace := range list.Items {
			names = append(names, namespace.Name)
		}
		require.Contains(t, names, "only-"+p.opts.Name)
		require.NotContains(t, names, "only-"+planes[1-i].opts.Name)
	}

	otherAdmin := planes[0].Config()
	otherAdmin.Host, otherAdmin.CAData = planes[1].Config().Host, planes[1].Config().CAData
	_, err := clientFor(t, otherAdmin).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "Unauthorized", "the admin of one plane is no user of another plane")
}

func TestKubeconfigFile(t *testing.T) {
	p := shared.ForTest(t)
	info, err := os.Stat(p.Kubeconfig())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	require.NoError(t, err)
	_, err = clientFor(t, cfg).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestConfigIsACopy(t *testing.T) {
	p := shared.ForTest(t)
	p.Config().Host = "elsewhere"
	require.NotEqual(t, "elsewhere", p.Config().Host)
	require.Negative(t, p.Config().QPS, "no client-side rate limit")
}

func TestUser_InvalidNamePanics(t *testing.T) {
	p := shared.ForTest(t)
	require.Panics(t, func() { p.User("\xff") })
}

func TestStart_FailsWithTheLog(t *testing.T) {
	skipIfShort(t)
	for _, c := range []struct {
		reason string
		broken string
		script string
		nodes  int
		want   []string
	}{
		{
			reason: "the API server ends at once",
			broken: apiServerName, script: "echo unknown flag; exit 3",
			want: []string{"start plane broken", "kube-apiserver", "exit status 3", "unknown flag"},
		},
		{
			reason: "etcd ends, and the API server waits for etcd",
			broken: etcdName, script: "echo disk is full; exit 4",
			want: []string{"start plane broken", "etcd", "exit status 4", "disk is full"},
		},
		{
			reason: "the controller manager does nothing until the context ends",
			broken: controllerManagerName, script: "echo thinking; touch $0.started; exec sleep 1000",
			want: []string{"kube-controller-manager", "default ServiceAccount", "waited enough", "still running", "thinking"},
		},
		{
			reason: "the scheduler ends, and no other component waits for the scheduler",
			broken: schedulerName, script: "echo no such profile; exit 5", nodes: 1,
			want: []string{"kube-scheduler", "exit status 5", "no such profile"},
		},
	} {
		t.Run(c.broken, func(t *testing.T) {
			verifyNoLeaks(t)
			assets := assetsWith(t, c.broken, c.script)
			t.Setenv(assetsVariable, assets)
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				ticker := time.NewTicker(tick)
				defer ticker.Stop()
				for ctx.Err() == nil && !exists(filepath.Join(assets, c.broken+".started")) {
					<-ticker.C
				}
				cancel(errors.New("waited enough"))
			}()
			_, err := Start(ctx, Options{Name: "broken", Nodes: c.nodes, Dir: dir})
			for _, want := range c.want {
				require.ErrorContains(t, err, want, c.reason)
			}
			require.Empty(t, entries(t, dir))
		})
	}
}

func TestStart_RetriesWithOtherPortsWhenAPortIsInUse(t *testing.T) {
	skipIfShort(t)
	// The port of the first etcd is in use, as if another process had been faster. Ports of later ones are not.
	once := filepath.Join(t.TempDir(), "once")
	real, err := Binaries(t.Context(), Options{})
	require.NoError(t, err)
	t.Setenv(assetsVariable, assetsWith(t, etcdName, fmt.Sprintf(
		`if mkdir %s; then echo listen: bind: address already in use; exit 1; fi; exec %s/etcd "$@"`, once, real)))
	dir := t.TempDir()
	p, err := Start(t.Context(), Options{Dir: dir})
	require.NoError(t, err)
	require.DirExists(t, once)
	require.Len(t, entries(t, dir), 1, "the first attempt leaves no folder")
	require.NoError(t, p.Stop())
}

func TestStop_ReportsEndedComponent(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	p, err := startForTest(t, Options{Name: "hurt"})
	require.NoError(t, err)
	require.NoError(t, p.running.controllers[controllerManagerName].cmd.Process.Kill())
	<-p.running.controllers[controllerManagerName].exited
	err = p.Stop()
	require.ErrorContains(t, err, "stop plane hurt: kube-controller-manager: ended by itself (signal: killed)")
	require.Equal(t, err.Error(), p.Stop().Error())
}

func TestPrepareComesBeforeTheControllers(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	dir, logs, broken := t.TempDir(), t.TempDir(), errors.New("broken")
	called := 0
	_, err := startForTest(t, Options{Name: "prepared", Dir: dir, LogDir: logs, Prepare: func(ctx context.Context,
		config *rest.Config) error {
		called++
		if _, err := clientFor(t, config).CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(logs, apiServerName+".log")); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(logs, controllerManagerName+".log")); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the controllers have started: %w", err)
		}
		return broken
	}})
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, called)
	require.Empty(t, entries(t, dir))
}

func TestUserCertificate(t *testing.T) {
	ca, err := newAuthority("test")
	require.NoError(t, err)
	p := &Plane{ca: ca, ports: planePorts{apiServer: 1}}
	cfg := p.User("jane", "devs", "ops")
	pair, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
	require.NoError(t, err)
	require.Equal(t, "jane", pair.Leaf.Subject.CommonName)
	require.ElementsMatch(t, []string{"devs", "ops"}, pair.Leaf.Subject.Organization)
	require.NoError(t, pair.Leaf.CheckSignatureFrom(ca.parent))
	block, rest := pem.Decode(cfg.CAData)
	require.Empty(t, rest)
	require.Equal(t, ca.parent.Raw, block.Bytes)
}

func TestTakePort_ReturnsEachPortOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		port, err := takePort()
		require.NoError(t, err)
		defer releasePorts(port)
		require.False(t, seen[port], port)
		require.GreaterOrEqual(t, port, firstPort)
		require.LessOrEqual(t, port, lastPort)
		seen[port] = true
	}
}

// pids returns the process IDs of a plane by name.
func (p *Plane) pids() map[string]int {
	pids := map[string]int{"watchdog": p.watchdog.cmd.Process.Pid}
	for _, process := range p.running.controllers {
		pids[process.name] = process.cmd.Process.Pid
	}
	pids[etcdName] = p.running.etcd.cmd.Process.Pid
	pids[apiServerName] = p.running.apiServer.cmd.Process.Pid
	return pids
}

// alive reports whether a process exists. It returns false for a zombie, because an orphan in a container may stay a
// zombie forever if its parent does not reap it.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !exists("/proc/self/stat") // macOS has no /proc, and its launchd reaps orphans.
	}
	state := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !bytes.HasPrefix(state, []byte(" Z"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return found
}

// assetsWith returns a folder with all programs, one of which is replaced by a shell script.
func assetsWith(t *testing.T, program, script string) string {
	t.Helper()
	real, err := Binaries(t.Context(), Options{Nodes: 1})
	require.NoError(t, err)
	folder := t.TempDir()
	for _, name := range programs {
		if name == program {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		} else {
			require.NoError(t, os.Symlink(filepath.Join(real, name), filepath.Join(folder, name)))
		}
	}
	return folder
}
