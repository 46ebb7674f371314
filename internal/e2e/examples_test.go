package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples runs the examples on clusters with nodes. The tests of the examples use local planes.
func TestExamples(t *testing.T) {
	files := clusters(t, "hub", "east", "west")
	hub, east, west := files[0], files[1], files[2]
	minimalHub := build(t, "minimal-hub")

	t.Run("from join to leave", func(t *testing.T) {
		_, err := call(t, minimalHub, "--once", "--hub", hub, "--member", "east="+east, "--member", "west="+west)
		require.NoError(t, err)
	})
	t.Run("musterctl lets a member join and leave", func(t *testing.T) {
		a := &admin{t: t, musterctl: build(t, "musterctl"), hub: hub, member: east}
		start(t, nil, minimalHub, "--hub", hub, "--member", "west="+west)
		a.eventually("get", "members", "west")
		a.joinAndLeave(build(t, "agent"))
	})
}

// admin is an administrator that runs musterctl.
type admin struct {
	t                      *testing.T
	musterctl, hub, member string
}

func (a *admin) onHub(args ...string) []string { return append(args, "--kubeconfig", a.hub) }

func (a *admin) onBoth(args ...string) []string {
	return a.onHub(append(args, "--member-kubeconfig", a.member)...)
}

// run runs a command that must succeed with an output that contains a text.
func (a *admin) run(want string, args ...string) {
	a.t.Helper()
	output, err := call(a.t, a.musterctl, args...)
	require.NoError(a.t, err)
	require.Contains(a.t, output, want)
}

// eventually runs a command on the hub until it succeeds.
func (a *admin) eventually(args ...string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { _, err := call(a.t, a.musterctl, a.onHub(args...)...); return err == nil },
		stepTimeout, retryPeriod)
}

// joinAndLeave lets the member join with its own agent, and leave. It runs most commands twice: each command can be
// repeated.
func (a *admin) joinAndLeave(program string) {
	a.t.Helper()
	joinFile := filepath.Join(a.t.TempDir(), "join.yaml")
	for range 2 {
		a.run("edge", a.onHub("token", "create", "edge", "--join-file", joinFile)...)
	}
	for range 2 {
		a.run("", a.onBoth("register", "--join-file", joinFile)...)
	}
	agent := start(a.t, []string{"KUBECONFIG=" + a.member}, program, "--name", "east", "--works")
	for range 2 {
		a.eventually("accept", "east")
	}
	for range 2 {
		a.run("joined", a.onBoth("register", "--join-file", joinFile, "--wait", "2m")...)
	}
	a.run("east", a.onHub("get", "members")...)
	a.run("the member has left", a.onBoth("unjoin", "east")...)
	a.run("no such member", a.onBoth("unjoin", "east")...)
	agent.interrupt(a.t)
	a.run("nothing to remove", a.onBoth("clean", "--yes")...)
	a.run("deleted", a.onHub("token", "delete", "edge")...)
}
