package registration

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUseBootstrapToken(t *testing.T) {
	bootstrap := testBootstrap(t)
	require.NoError(t, bootstrap.UseBootstrapToken("abc123.0123456789abcdef"))
	require.Equal(t, "abc123.0123456789abcdef", bootstrap.Token)
	require.Equal(t, "bootstrap-token-abc123", bootstrap.TokenName)
	require.Equal(t, "49eff728c0caa43d59a0516ada3a432fd5bda01ae13eb1477b731b78e490ef95", hex.EncodeToString(bootstrap.Key),
		"hubs and agents of all versions must derive the same key")
	_, err := bootstrap.Marshal()
	require.NoError(t, err)

	other := testBootstrap(t)
	require.NoError(t, other.UseBootstrapToken("abc124.0123456789abcdef"))
	require.NotEqual(t, bootstrap.Key, other.Key, "different tokens have different keys")
}

func TestUseBootstrapToken_InvalidTokens(t *testing.T) {
	for _, test := range []struct{ reason, token string }{
		{"an empty token", ""},
		{"a token without a secret", "abc123"},
		{"a short secret", "abc123.hush"},
		{"a long secret", "abc123.0123456789abcdefg"},
		{"an ID with capital letters", "ABC123.0123456789abcdef"},
		{"a line break after the token", "abc123.0123456789abcdef\n"},
		{"a line break before the token", "\nabc123.0123456789abcdef"},
		{"a bearer token of another kind", "hush.hush.hush"},
	} {
		bootstrap := testBootstrap(t)
		before := bootstrap.wire()
		err := bootstrap.UseBootstrapToken(test.token)
		require.Equal(t, "token", fieldOf(err), test.reason)
		require.NotContains(t, err.Error(), "hush", test.reason)
		require.Equal(t, before, bootstrap.wire(), test.reason)
	}
}

func TestParseBootstrap_DerivesKeyFromBootstrapToken(t *testing.T) {
	want := testBootstrap(t)
	require.NoError(t, want.UseBootstrapToken("abc123.0123456789abcdef"))
	data, err := want.Marshal()
	require.NoError(t, err)
	var short []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if !strings.HasPrefix(line, "tokenName:") && !strings.HasPrefix(line, "key:") {
			short = append(short, line)
		}
	}
	got, err := ParseBootstrap([]byte(strings.Join(short, "\n")))
	require.NoError(t, err)
	require.Equal(t, want.wire(), got.wire())

	_, err = ParseBootstrap([]byte(strings.ReplaceAll(strings.Join(short, "\n"), "abc123.", "hush.")))
	require.Equal(t, "tokenName", fieldOf(err), "a token of another kind needs its name and its key")
}
