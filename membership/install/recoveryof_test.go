package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// lostMember returns a member whose heartbeats stopped before its credential expired, a minute ago.
func lostMember(change func(*observed)) observed {
	o := observed{
		Now: epoch, Accepted: true, Joined: true, CredentialEnd: epoch.Add(-time.Minute), Desired: desired{Hash: "h"},
		Heartbeat: heartbeatSeen{Lost: true}, Timeouts: timeouts{Token: time.Hour},
		Install: installSeen{Touched: true, Shown: v1alpha1.ReasonInstalled,
			Last: &v1alpha1.InstallStatus{Hash: "h", InstalledAt: new(metav1.NewTime(epoch.Add(-time.Hour)))}},
	}
	change(&o)
	return o
}

func withAttempts(o *observed, attempts int32, at time.Time) {
	o.Install.Last.Recovery = &v1alpha1.InstallRecovery{CredentialExpirationTime: metav1.NewTime(o.CredentialEnd),
		Attempts: attempts}
	o.Install.Last.InstalledAt = new(metav1.NewTime(at))
}

func TestRecoveryOf(t *testing.T) {
	for _, test := range []struct {
		reason string
		o      observed
		want   recovery
	}{
		{"the credential has expired and no heartbeats arrive", lostMember(func(*observed) {}), recovery{Due: true}},
		{"heartbeats arrive", lostMember(func(o *observed) { o.Heartbeat.Lost = false }), recovery{}},
		{"the expiration of the credential is unknown", lostMember(func(o *observed) { o.CredentialEnd = time.Time{} }),
			recovery{}},
		{"the credential has not expired", lostMember(func(o *observed) { o.CredentialEnd = epoch.Add(time.Hour) }),
			recovery{After: time.Hour}},
		{"the member is unreachable", lostMember(func(o *observed) { o.Unreachable = true }),
			recovery{}},
		{"the agent has not joined", lostMember(func(o *observed) { o.Joined = false }), recovery{}},
		{"the member has a token that is still valid",
			lostMember(func(o *observed) { o.Token = &tokenSeen{Ends: epoch.Add(time.Minute)} }), recovery{After: time.Minute}},
		{"after one attempt, the agent has time to return",
			lostMember(func(o *observed) { withAttempts(o, 1, epoch.Add(-time.Minute)) }),
			recovery{After: 59 * time.Minute}},
		{"after one attempt, the time has passed",
			lostMember(func(o *observed) { withAttempts(o, 1, epoch.Add(-time.Hour)) }), recovery{Due: true}},
		{"the interval doubles with each attempt",
			lostMember(func(o *observed) { withAttempts(o, 3, epoch) }), recovery{After: 4 * time.Hour}},
		{"the interval is at most a day",
			lostMember(func(o *observed) { withAttempts(o, maxRecoveries, epoch); o.Timeouts.Token = 20 * time.Hour }),
			recovery{After: 24 * time.Hour}},
		{"the interval is at least the lifetime of the token",
			lostMember(func(o *observed) { withAttempts(o, 4, epoch); o.Timeouts.Token = 30 * time.Hour }),
			recovery{After: 30 * time.Hour}},
		{"recovery is given up after the last attempt",
			lostMember(func(o *observed) { withAttempts(o, maxRecoveries, epoch.AddDate(0, 0, -2)) }),
			recovery{GivenUp: true}},
		{"recovery of an unreachable member is given up after the last attempt",
			lostMember(func(o *observed) { withAttempts(o, maxRecoveries, epoch.AddDate(0, 0, -2)); o.Unreachable = true }),
			recovery{GivenUp: true}},
		{"another credential has expired since", lostMember(func(o *observed) {
			withAttempts(o, maxRecoveries, epoch.AddDate(0, 0, -2))
			o.CredentialEnd = epoch
		}), recovery{Due: true}},
	} {
		require.Equal(t, test.want, recoveryOf(test.o), test.reason)
	}
}

func TestRecoveryAfter(t *testing.T) {
	attempts := func(change func(*observed)) int32 {
		after := recoveryAfter(lostMember(change))
		if after == nil {
			return 0
		}
		require.True(t, after.CredentialExpirationTime.Time.Equal(lostMember(change).CredentialEnd))
		return after.Attempts
	}
	require.Equal(t, int32(1), attempts(func(*observed) {}))
	require.Equal(t, int32(3), attempts(func(o *observed) { withAttempts(o, 2, epoch) }))
	require.Equal(t, int32(1),
		attempts(func(o *observed) { withAttempts(o, maxRecoveries, epoch); o.Desired.RequestedAt = "now" }),
		"a requested installation resets the attempts")
	require.Zero(t, attempts(func(o *observed) { withAttempts(o, 2, epoch); o.Heartbeat.Lost = false }),
		"an agent with heartbeats has no recovery")
	require.Zero(t, attempts(func(o *observed) { o.CredentialEnd = epoch.Add(time.Second) }),
		"an installation before the expiration is no recovery")
}

// TestRecovery_AttemptsAreLimited checks, for all times of the decisions, that an agent that never connects again is
// installed at most maxRecoveries times for a credential, with increasing pauses.
func TestRecovery_AttemptsAreLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := lostMember(func(*observed) {})
		var installs []time.Time
		for range 400 {
			s := next(o)
			switch s.Action {
			case install:
				installs = append(installs, o.Now)
				o.Install.Last = &v1alpha1.InstallStatus{Hash: o.Desired.Hash, InstalledAt: new(metav1.NewTime(o.Now)),
					Recovery: s.Recovery}
				o.Token = &tokenSeen{Ends: o.Now.Add(o.Timeouts.Token)}
			case discard:
				o.Token = nil
			default:
				if s.After == 0 {
					if len(installs) != maxRecoveries || s.Condition == nil || s.Condition.Reason != v1alpha1.ReasonAgentNotReturned {
						t.Fatalf("given up after %d attempts with the condition %v", len(installs), s.Condition)
					}
					return
				}
			}
			if rapid.Bool().Draw(t, "early") {
				s.After /= 2
			}
			o.Now = o.Now.Add(s.After)
			if n := len(installs); n > 2 && installs[n-1].Sub(installs[n-2]) < installs[n-2].Sub(installs[n-3]) {
				t.Fatalf("the interval decreases: %v", installs)
			}
		}
		t.Fatalf("recovery is never given up: %v", installs)
	})
}
