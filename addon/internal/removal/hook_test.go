package removal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/addon/internal/removal"
)

func TestAll_CombinesHooks(t *testing.T) {
	const none, missing, runs, done, failed, removing = removal.NoHook, removal.NotStarted, removal.Running,
		removal.Succeeded, removal.Failed, removal.Removing
	for _, c := range []struct {
		reason   string
		one, two removal.HookState
		want     removal.HookState
		wantOne  bool // the result is the first hook
	}{
		{"no hooks", none, none, none, false},
		{"a succeeded hook and no hook", done, none, done, true},
		{"a hook that is not started and a failed hook", missing, failed, missing, true},
		{"a hook that is not started and a hook that is being removed", missing, removing, missing, true},
		{"a failed hook and a succeeded hook", failed, done, failed, true},
		{"a failed hook and a hook that is being removed", failed, removing, failed, true},
		{"a running hook and a succeeded hook", runs, done, runs, true},
		{"two succeeded hooks", done, done, done, true},
		{"two hooks that are being removed", removing, removing, removing, true},
		{"a succeeded hook and a hook that is being removed", done, removing, runs,
			false},
	} {
		hooks := []removal.Hook{{State: c.one, Message: "one", Since: time.Unix(1, 0)},
			{State: c.two, Message: "two", Since: time.Unix(2, 0)}}
		for _, order := range [][]removal.Hook{hooks, {hooks[1], hooks[0]}} {
			got := removal.All(order...)
			require.Equal(t, c.want, got.State, c.reason)
			if c.wantOne && c.one != c.two {
				require.Equal(t, hooks[0], got, c.reason)
			}
		}
	}
	require.Zero(t, removal.All())
}
