package heartbeat

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHolders_Cloned checks which sequences of heartbeats show that several agents run. Each letter is a heartbeat of
// the process with this identity, half a minute after the previous one. A dot is a pause of ten minutes.
func TestHolders_Cloned(t *testing.T) {
	for _, test := range []struct {
		reason, heartbeats string
		want               string
	}{
		{"one agent", "aaaaaaaa", ""},
		{"an agent that is restarted", "aaabbbccc", ""},
		{"an agent that ends after each heartbeat", "abcdefghij", ""},
		{"another replica takes over, and the paused former one sends its last request", "aabbabb", ""},
		{"two agents", "ababab", "ab"},
		{"two agents, one of them sometimes late", "aabaababb", "ab"},
		{"three agents", "abcabc", "abc"},
		{"a clone that is restarted", "abababacac", "abc"},
		{"a clone that was stopped", "abababa.a", ""},
		{"a clone that was stopped, and a restarted agent", "ababab.ccc", ""},
		{"two returns of a former process, an hour apart", "aba......bab", ""},
	} {
		h, now := holders{}, epoch
		last := ""
		for letter := range strings.SplitSeq(test.heartbeats, "") {
			if letter == "." {
				now = now.Add(10 * time.Minute)
				continue
			}
			before := strings.Join(h.of("m"), "")
			changed := h.observe("m", sighting{holder: letter, acquired: letter != last, grace: grace}, now)
			cloned, was := h.of("m") != nil, before != ""
			require.Equal(t, cloned != was, changed, "%s: change at %s", test.reason, letter)
			now, last = now.Add(30*time.Second), letter
		}
		require.Equal(t, test.want, strings.Join(h.of("m"), ""), test.reason)
	}
}

// TestHolders_NoEntriesAtRest checks that the holders of a fleet use no memory while no holder changes.
func TestHolders_NoEntriesAtRest(t *testing.T) {
	h, now := holders{}, epoch
	for i := range 20 {
		h.observe("m", sighting{holder: "a", acquired: i == 0, grace: grace}, now)
		h.observe("earlier", sighting{}, now) // an agent without an identity
		now = now.Add(time.Minute)
	}
	require.Empty(t, h)
}
