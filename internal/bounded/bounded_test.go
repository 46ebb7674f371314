package bounded_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/bounded"
)

func TestText_Limit(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"a text within the limit is unchanged", "12345678", "12345678"},
		{"a longer text ends in an ellipsis", "123456789", "12345…"},
		{"a character of two bytes is not split", "1234éé9", "1234…"},
		{"invalid UTF-8 is replaced, as the API server does", "a\xffb", "a\uFFFDb"},
		{"continuation bytes only", strings.Repeat("\x80", 20), "\uFFFD"},
		{"characters of four bytes", "😀😀😀", "😀…"},
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

func TestMetadata_KeepsEntriesOfMuster(t *testing.T) {
	for _, test := range []struct {
		reason    string
		all, want map[string]string
	}{
		{"no entries", nil, nil},
		{"entries of muster stay", map[string]string{"muster.dev/a": "1", "work.muster.dev/b": "2"},
			map[string]string{"muster.dev/a": "1", "work.muster.dev/b": "2"}},
		{"other entries are dropped", map[string]string{"work.muster.dev/b": "2", "a": "x", "muster.dev.example.com/a": "x",
			"notmuster.dev/a": "x", "muster.dev": "x"}, map[string]string{"work.muster.dev/b": "2"}},
		{"without an entry of muster, the first key remains with an empty value", map[string]string{"b": "x", "a": "x"},
			map[string]string{"a": ""}},
	} {
		require.Equal(t, test.want, bounded.Metadata(test.all), test.reason)
	}
}
