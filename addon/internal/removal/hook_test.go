package removal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/addon/internal/removal"
)

func TestAll(t *testing.T) {
	const none, missing, runs, done, failed, going = removal.NoHook, removal.NotStarted, removal.Running,
		removal.Succeeded, removal.Failed, removal.Removing
	for _, c := range []struct {
		reason    string
		one, two  removal.HookState
		want      removal.HookState
		wantOfOne bool // its message
	}{
		{"an add-on without hooks waits for none", none, none, none, false},
		{"where there is no hook nothing is waited for", done, none, done, true},
		{"a missing one must be created, whatever the state of the other one", missing, failed, missing, true},
		{"and while the other one is being taken back", missing, going, missing, true},
		{"a failed one must run again, also when the other one is done", failed, done, failed, true},
		{"or on its way out", failed, going, failed, true},
		{"one that runs is waited for", runs, done, runs, true},
		{"all are done", done, done, done, true},
		{"all are going: nothing is left to be deleted", going, going, going, true},
		{"one is still to be deleted, and the other one to be run anew: neither is as if it were both", done, going, runs,
			false},
	} {
		hooks := []removal.Hook{{State: c.one, Message: "one", Since: time.Unix(1, 0)},
			{State: c.two, Message: "two", Since: time.Unix(2, 0)}}
		for _, order := range [][]removal.Hook{hooks, {hooks[1], hooks[0]}} {
			got := removal.All(order...)
			require.Equal(t, c.want, got.State, c.reason)
			if c.wantOfOne && c.one != c.two {
				require.Equal(t, hooks[0], got, c.reason)
			}
		}
	}
	require.Zero(t, removal.All())
}
