package panics_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/internal/panics"
)

func TestRecovered(t *testing.T) {
	require.NoError(t, panics.Recovered(func() error { return nil }))
	no := errors.New("no")
	require.Equal(t, no, panics.Recovered(func() error { return no }))

	err := panics.Recovered(func() error { panic("out of ideas") })
	require.EqualError(t, err, "panic: out of ideas")
	panicked, is := errors.AsType[*panics.Error](err)
	require.True(t, is)
	require.Contains(t, string(panicked.Stack), "panics_test.go", "it says where")
}
