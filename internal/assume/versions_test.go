package assume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/assume"
)

func TestVersions_Lacks(t *testing.T) {
	now := time.Unix(1000, 0)
	var v assume.Versions
	require.False(t, v.Lacks(object("u", "1"), now), "this process has written nothing")

	v.Record(object("u", "5"))
	require.True(t, v.Lacks(object("u", "4"), now))
	require.True(t, v.Lacks(object("u", "4"), now.Add(assume.MaxWait-1)))
	require.False(t, v.Lacks(object("u", "4"), now.Add(assume.MaxWait)), "the version will never appear")
	require.False(t, v.Lacks(object("u", "4"), now), "the wait is over")

	v.Record(object("u", "5"))
	require.True(t, v.Lacks(object("u", "4"), now))
	v.Record(object("u", "6"))
	require.True(t, v.Lacks(object("u", "5"), now.Add(assume.MaxWait)), "each write has a separate wait")
	require.False(t, v.Lacks(object("u", "6"), now), "the cache contains the version")
	require.False(t, v.Lacks(object("u", "5"), now), "an observed version is not waited for again")

	v.Record(object("u", "7"))
	v.Forget(name)
	require.False(t, v.Lacks(object("u", "6"), now))
}
