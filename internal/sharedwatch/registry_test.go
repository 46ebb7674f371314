package sharedwatch_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/sharedwatch"
)

type sharedObject struct {
	users sharedwatch.Users[string]
	end   func()
}

func (t *sharedObject) Users() sharedwatch.Users[string] { return t.users }
func (t *sharedObject) Close()                           { t.end() }

// TestRegistry_LifetimeFollowsUsers checks that a shared object starts with its first user and ends with its last user.
func TestRegistry_LifetimeFollowsUsers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all sharedwatch.Registry[string, int, *sharedObject]
		wants, live := map[string][]int{}, map[int]int{}
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			user := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "user")
			wants[user] = rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 3, rapid.ID[int]).Draw(r, "keys")
			all.Want(user, wants[user], func(key int) *sharedObject {
				live[key]++
				return &sharedObject{users: sharedwatch.Users[string]{}, end: func() { live[key]-- }}
			})
			wanted := map[int]int{}
			for _, keys := range wants {
				for _, key := range keys {
					wanted[key] = 1
				}
			}
			maps.DeleteFunc(live, func(_, n int) bool { return n == 0 })
			require.Equal(r, wanted, live)
			require.Len(r, all.All(), len(wanted))
			require.Len(r, all.Wanted(user), len(wants[user]))
			for key, of := range all.All() {
				got, exists := all.Get(key)
				require.True(r, exists)
				require.Same(r, of, got)
				for user := range wants {
					_, uses := of.users[user]
					require.Equal(r, slices.Contains(wants[user], key), uses)
				}
			}
		}
	})
}

func TestUsers_ReadersAndOutdated(t *testing.T) {
	u := sharedwatch.Users[string]{"a": false, "b": false}
	require.Empty(t, u.Readers(), "no user has read the state")
	u.Read("a")
	u.Read("other")
	require.Equal(t, []string{"a"}, u.Readers())
	require.Equal(t, []string{"a"}, u.Outdated())
	require.Empty(t, u.Outdated(), "a user is notified once")
	require.Len(t, u, 2, "Read adds no user")
}
