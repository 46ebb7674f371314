package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutcome checks that an interrupted run with --once is an error, so that a script does not mistake it for a
// successful run. An interrupt is the normal end of a live fleet.
func TestOutcome(t *testing.T) {
	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("interrupt signal received"))
	failed := errors.New("timeout")
	for _, test := range []struct {
		reason string
		ctx    context.Context
		once   bool
		err    error
		want   error
	}{
		{"all steps succeed", t.Context(), true, nil, nil},
		{"a step failed", t.Context(), true, failed, failed},
		{"an interrupt before the last step", interrupted, true, failed, errInterrupted},
		{"an interrupt after the last step", interrupted, true, nil, nil},
		{"an interrupt of a live fleet", interrupted, false, failed, nil},
		{"a failure of a live fleet", t.Context(), false, failed, failed},
	} {
		require.Equal(t, test.want, outcome(test.ctx, flags{once: test.once}, test.err), test.reason)
	}
}

// TestRun_Interrupted checks an interruption before any cluster was reached.
func TestRun_Interrupted(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c,
	  contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`), 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	f := flags{once: true, hub: kubeconfig, members: []string{"east=" + kubeconfig}}
	require.ErrorContains(t, run(ctx, f), errInterrupted.Error())
	f.once = false
	require.NoError(t, run(ctx, f))
}
