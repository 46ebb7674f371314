package bounded_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/internal/bounded"
)

func TestText(t *testing.T) {
	require.Equal(t, "short", bounded.Text("short", 5))
	require.Equal(t, "lo…", bounded.Text("longer", 5))
	require.Equal(t, "é…", bounded.Text("ééé", 5))
	require.Equal(t, "\uFFFD", bounded.Text("\xff", 5))
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		got := bounded.Text(rapid.String().Draw(t, "text"), limit)
		require.LessOrEqual(t, len(got), limit)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, bounded.Text(got, limit))
	})
}
