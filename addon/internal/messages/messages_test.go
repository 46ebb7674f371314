package messages

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJoinMessageCount(t *testing.T) {
	require.Equal(t, "One. Two.", Join("", "One.", "", "Two."))
	require.Equal(t, []string{"", "One.", "One.", "On…"},
		[]string{Message(""), Message("One"), Message("One."), Message("On…")})
	require.Equal(t, []string{"0 members", "1 member", "2 members"},
		[]string{Count(0, "member"), Count(1, "member"), Count(2, "member")})
}
