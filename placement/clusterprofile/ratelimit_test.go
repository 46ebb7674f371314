package clusterprofile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRateLimit(t *testing.T) {
	at := func(seconds time.Duration) time.Time { return noon.Add(seconds * time.Second) }
	p := rateLimit{}
	require.Zero(t, p.wait(at(0), false), "the first write does not wait")
	p = p.afterWrite(at(0))
	require.Equal(t, 30*time.Second, p.wait(at(0), false))
	require.Equal(t, 20*time.Second, p.wait(at(10), false))
	require.Zero(t, p.wait(at(30), false))
	for range burst - 1 {
		require.Zero(t, p.wait(at(10), true), "a transition does not wait")
		p = p.afterWrite(at(10))
	}
	require.Equal(t, 20*time.Second, p.wait(at(10), true), "a transition waits after the burst")
	require.Zero(t, p.wait(at(1000), false), "old writes are ignored")
}

// TestRateLimit_Maximum checks that in any period there are at most ten writes, and one more for each 30 s.
func TestRateLimit_Maximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p rateLimit
		var writes []time.Time
		now := noon.Time
		for range rapid.IntRange(1, 80).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "later")) * time.Second)
			transition := rapid.Bool().Draw(t, "transition")
			if wait := p.wait(now, transition); wait == 0 {
				p = p.afterWrite(now)
				writes = append(writes, now)
			} else {
				require.Zero(t, p.wait(now.Add(wait), transition), "the write must not wait longer")
				require.NotZero(t, p.wait(now.Add(wait-1), transition), "the write must wait until then")
			}
		}
		for i, from := range writes {
			for j, to := range writes[i:] {
				require.LessOrEqual(t, j+1, burst+int(to.Sub(from)/perWrite), "from %s to %s", from, to)
			}
		}
	})
}
