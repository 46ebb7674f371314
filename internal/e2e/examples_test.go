package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamples: what the examples go through on local planes they go through on clusters with nodes of their own.
func TestExamples(t *testing.T) {
	files := clusters(t, "hub", "east", "west")
	hub, east, west := files[0], files[1], files[2]
	minimalHub := build(t, "minimal-hub")

	t.Run("from join to leave", func(t *testing.T) {
		_, err := call(t, minimalHub, "--once", "--hub", hub, "--member", "east="+east, "--member", "west="+west)
		require.NoError(t, err)
	})
	t.Run("a command line brings a member in and out again", func(t *testing.T) {
		a := &admin{t: t, musterctl: build(t, "musterctl"), hub: hub, member: east}
		start(t, nil, minimalHub, "--hub", hub, "--member", "west="+west)
		a.eventually("get", "members", "west")
		a.inAndOut(build(t, "agent"))
	})
}

// admin is who types commands.
type admin struct {
	t                      *testing.T
	musterctl, hub, member string
}

func (a *admin) onHub(args ...string) []string { return append(args, "--kubeconfig", a.hub) }

func (a *admin) onBoth(args ...string) []string {
	return a.onHub(append(args, "--member-kubeconfig", a.member)...)
}

// does runs a command that is to succeed and say something.
func (a *admin) does(says string, args ...string) {
	a.t.Helper()
	said, err := call(a.t, a.musterctl, args...)
	require.NoError(a.t, err)
	require.Contains(a.t, said, says)
}

// eventually runs a command on the hub until it succeeds.
func (a *admin) eventually(args ...string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { _, err := call(a.t, a.musterctl, a.onHub(args...)...); return err == nil },
		stepTimeout, againAfter)
}

// inAndOut has the member join with an agent of its own, and leave. Each command is given twice: that is harmless.
func (a *admin) inAndOut(program string) {
	a.t.Helper()
	joinFile := filepath.Join(a.t.TempDir(), "join.yaml")
	for range 2 {
		a.does("edge", a.onHub("token", "create", "edge", "--join-file", joinFile)...)
	}
	for range 2 {
		a.does("", a.onBoth("register", "--join-file", joinFile)...)
	}
	agent := start(a.t, []string{"KUBECONFIG=" + a.member}, program, "--name", "east", "--works")
	for range 2 {
		a.eventually("accept", "east")
	}
	for range 2 {
		a.does("joined", a.onBoth("register", "--join-file", joinFile, "--wait", "2m")...)
	}
	a.does("east", a.onHub("get", "members")...)
	a.does("the member has left", a.onBoth("unjoin", "east")...)
	a.does("no such member", a.onBoth("unjoin", "east")...)
	agent.interrupt(a.t)
	a.does("nothing to remove", a.onBoth("clean", "--yes")...)
	a.does("deleted", a.onHub("token", "delete", "edge")...)
}
