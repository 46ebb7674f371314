package bounded_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/bounded"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"what is short stays", "12345678", "12345678"},
		{"what is longer says that it was cut", "123456789", "12345…"},
		{"no character is cut in two", "1234éé9", "1234…"},
		{"what is no UTF-8 comes back from the API as something else", "a\xffb", "a\uFFFDb"},
		{"nothing but the middle of characters", strings.Repeat("\x80", 20), "\uFFFD"},
		{"four bytes each", "😀😀😀", "😀…"},
	} {
		require.Equal(t, test.want, bounded.Text(test.text, 8), test.reason)
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		got := bounded.Text(rapid.String().Draw(t, "text"), limit)
		require.LessOrEqual(t, len(got), limit)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, bounded.Text(got, limit))
	})
}

func TestMetadata(t *testing.T) {
	for _, test := range []struct {
		reason    string
		all, want map[string]string
	}{
		{"nothing", nil, nil},
		{"entries of muster stay", map[string]string{"muster.dev/a": "1", "work.muster.dev/b": "2"},
			map[string]string{"muster.dev/a": "1", "work.muster.dev/b": "2"}},
		{"others are dropped", map[string]string{"work.muster.dev/b": "2", "a": "x", "muster.dev.example.com/a": "x",
			"notmuster.dev/a": "x", "muster.dev": "x"}, map[string]string{"work.muster.dev/b": "2"}},
		{"the map is not empty", map[string]string{"b": "x", "a": "x"}, map[string]string{"a": ""}},
	} {
		require.Equal(t, test.want, bounded.Metadata(test.all), test.reason)
	}
}
