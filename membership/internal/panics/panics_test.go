package panics_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/internal/panics"
)

func TestRecovered(t *testing.T) {
	require.NoError(t, panics.Recovered(func() error { return nil }))
	expected := errors.New("no")
	require.Equal(t, expected, panics.Recovered(func() error { return expected }))

	err := panics.Recovered(func() error { panic("out of ideas") })
	require.EqualError(t, err, "panic: out of ideas")
	panicked, ok := errors.AsType[*panics.Error](err)
	require.True(t, ok)
	require.Contains(t, string(panicked.Stack), "panics_test.go", "the stack contains the file of the panic")
}
