package words

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCut(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"what is short stays", "12345678", "12345678"},
		{"what is longer says that it was cut", "123456789", "12345…"},
		{"no character is cut in two", "1234éé9", "1234…"},
		{"what is no UTF-8 comes back from the API as something else", "a\xffb", "a\uFFFDb"},
		{"nothing but the middle of characters", strings.Repeat("\x80", 20), "\uFFFD"},
		{"four bytes each", "😀😀😀", "😀…"},
	} {
		require.Equal(t, test.want, Cut(test.text, 8), test.reason)
	}
}

func TestSentences(t *testing.T) {
	require.Equal(t, "One. Two.", Join("", "One.", "", "Two."))
	require.Equal(t, []string{"", "One.", "One.", "On…"}, []string{Sentence(""), Sentence("One"), Sentence("One."), Sentence("On…")})
	require.Equal(t, []string{"0 members", "1 member", "2 members"}, []string{Count(0, "member"), Count(1, "member"), Count(2, "member")})
}
