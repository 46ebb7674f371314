package heartbeat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership"
)

func TestPolicy_Validate(t *testing.T) {
	for _, tc := range []struct {
		reason string
		policy Policy
		want   string // the field
	}{
		{"the zero Policy is valid", Policy{}, ""},
		{"an OutageShare above 1 disables outages", Policy{OutageShare: 2}, ""},
		{"a negative OutageShare", Policy{OutageShare: -0.1}, "OutageShare"},
		{"an OutageShare that is not a number", Policy{OutageShare: math.NaN()}, "OutageShare"},
		{"a negative OutageMinimum", Policy{OutageMinimum: -1}, "OutageMinimum"},
		{"a grace period as long as the period",
			Policy{Grace: func(p time.Duration) time.Duration { return p }}, "Grace"},
		{"a constant grace period that is too short for the longest period",
			Policy{Grace: func(time.Duration) time.Duration { return 5 * time.Minute }}, "Grace"},
		{"a constant grace period longer than every period",
			Policy{Grace: func(time.Duration) time.Duration { return time.Hour }}, ""},
		{"a negative Hold",
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

// TestOutage_EndsWithoutLateMembers checks that an outage ends when no member is late, for all values of OutageShare.
func TestOutage_EndsWithoutLateMembers(t *testing.T) {
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
		require.True(t, suspected, "share %v: want an outage if all members are late", share)
		beat()
		_, suspected = m.Outage()
		require.False(t, suspected, "share %v: want no outage after heartbeats of all members", share)
	}
}
