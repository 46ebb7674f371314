package localplane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFaults causes faults on one plane, one after the other.
func TestFaults(t *testing.T) {
	t.Parallel()
	p := ForTest(t, Options{Name: "faulty", Nodes: 1})
	for _, test := range []struct {
		name  string
		check func(*testing.T, *Plane)
	}{
		{"StartAPIServer keeps the data", checkKeptData},
		{"PauseAPIServer", checkPause},
		{"Restore", checkRestore},
		{"clients with a later resourceVersion", checkLaterResourceVersions},
		{"Stop ends StartAPIServer", checkStopDuringStart}, // the last one
	} {
		if !t.Run(test.name, func(t *testing.T) { test.check(t, p) }) {
			return
		}
	}
}

// checkKeptData checks the data, the credentials and the controllers of an API server that starts again.
func checkKeptData(t *testing.T, p *Plane) {
	client := clientFor(t, p.Config())
	namespace := newNamespace(t, client)
	before, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	user := p.User("jane")

	require.ErrorContains(t, p.StartAPIServer(t.Context()), "the plane is running")
	killed := p.running.apiServer.cmd.Process.Pid
	require.NoError(t, p.KillAPIServer())
	require.False(t, alive(killed))
	requireRefused(t, p.User("new"))
	require.ErrorContains(t, p.KillAPIServer(), "not running")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.StartAPIServer(ended), context.Canceled)

	require.NoError(t, p.StartAPIServer(t.Context()), "StartAPIServer may be called again after an error")
	after, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, "jane", whoAmI(t, user).Username, "credentials remain valid")
	deployAndWait(t, client, namespace) // The controllers have connected again.
}

// checkStopDuringStart stops the plane while the API server starts.
func checkStopDuringStart(t *testing.T, p *Plane) {
	require.NoError(t, p.KillAPIServer())
	// The API server does not become ready while etcd is suspended. A suspended etcd does not end by SIGTERM.
	require.NoError(t, p.running.etcd.cmd.Process.Signal(syscall.SIGSTOP))
	failed := make(chan error)
	go func() { failed <- p.StartAPIServer(t.Context()) }()
	require.Eventually(t, func() bool {
		if !p.mu.TryLock() {
			return true
		}
		p.mu.Unlock()
		return false
	}, eventually, tick, "StartAPIServer holds the lock while it waits")

	began := time.Now()
	require.NoError(t, p.Stop())
	require.Less(t, time.Since(began), 10*time.Second)
	require.ErrorContains(t, <-failed, "the plane is being stopped")
}

// crashingVariable makes TestMain start a plane in the folder that the variable names, print its processes and wait to
// be killed.
const crashingVariable = "MUSTER_TEST_CRASH"

func crash() {
	p, err := startForTest(nil, Options{Name: "orphan", Nodes: 1, Dir: os.Getenv(crashingVariable)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(p.pids()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func TestWatchdog_RemovesPlaneWhenTheParentIsKilled(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), crashingVariable+"="+dir)
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	var pids map[string]int
	require.NoError(t, json.Unmarshal(line, &pids))
	require.Len(t, pids, 6, "five components and the watchdog")
	for name, pid := range pids {
		require.True(t, alive(pid), name)
	}
	require.Len(t, entries(t, dir), 1)

	require.NoError(t, parent.Process.Kill())
	for name, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, eventually, tick, name)
	}
	require.Empty(t, entries(t, dir))
}
