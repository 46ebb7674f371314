package heartbeat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership"
)

func TestPolicyValidate(t *testing.T) {
	for _, tc := range []struct {
		reason string
		policy Policy
		want   string // the field
	}{
		{"the zero Policy is the default", Policy{}, ""},
		{"more than all is the way to say never", Policy{OutageShare: 2}, ""},
		{"a fleet is not late by less than nothing", Policy{OutageShare: -0.1}, "OutageShare"},
		{"nor by no number", Policy{OutageShare: math.NaN()}, "OutageShare"},
		{"nor by a negative number", Policy{OutageMinimum: -1}, "OutageMinimum"},
		{"a grace that is the period leaves no time for the next heartbeat",
			Policy{Grace: func(p time.Duration) time.Duration { return p }}, "Grace"},
		{"a grace that is the same for all is too short for some",
			Policy{Grace: func(time.Duration) time.Duration { return 5 * time.Minute }}, "Grace"},
		{"one that is long enough for all will do", Policy{Grace: func(time.Duration) time.Duration { return time.Hour }},
			""},
		{"no heartbeats are steady before they begin",
			Policy{Hold: func(flaps int, _ time.Duration) time.Duration { return time.Duration(3-flaps) * time.Second }},
			"Hold"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := tc.policy.Validate()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			var invalid *membership.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, tc.want, invalid.Field)
		})
	}
}

// TestOutageEnds checks that an outage ends when no member is late, for all values of OutageShare.
func TestOutageEnds(t *testing.T) {
	for _, share := range []float64{0.05, 0.15, 0.2, 1} {
		now := start
		m := NewMonitor(Policy{OutageShare: share})
		names := []string{"a", "b", "c", "d"}
		beat := func() {
			for _, name := range names {
				m.Observe(name, now, now)
			}
			m.Expire(now)
		}
		for _, name := range names {
			m.Track(name, 10*time.Second, now)
		}
		beat()
		now = now.Add(20 * time.Second)
		m.Expire(now)
		_, suspected := m.Outage()
		require.True(t, suspected, "share %v: all are late", share)
		beat()
		_, suspected = m.Outage()
		require.False(t, suspected, "share %v: all are heard", share)
	}
}
