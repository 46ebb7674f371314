package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// lost returns a member whose heartbeats stopped before its credential expired, a minute ago.
func lost(change func(*observed)) observed {
	o := observed{
		Now: epoch, Accepted: true, Joined: true, CredentialEnd: epoch.Add(-time.Minute), Desired: desired{Hash: "h"},
		Heartbeat: heartbeatSeen{Lost: true}, Timeouts: timeouts{Token: time.Hour},
		Install: installSeen{Touched: true, Shown: v1alpha1.ReasonInstalled,
			Last: &v1alpha1.InstallStatus{Hash: "h", InstalledAt: new(metav1.NewTime(epoch.Add(-time.Hour)))}},
	}
	change(&o)
	return o
}

func tried(o *observed, attempts int32, at time.Time) {
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
		{"it cannot come back by itself", lost(func(*observed) {}), recovery{Due: true}},
		{"it is heard, so it has one that works", lost(func(o *observed) { o.Heartbeat.Lost = false }), recovery{}},
		{"its credential does not expire, or that is unknown", lost(func(o *observed) { o.CredentialEnd = time.Time{} }),
			recovery{}},
		{"it may come back by itself until then", lost(func(o *observed) { o.CredentialEnd = epoch.Add(time.Hour) }),
			recovery{After: time.Hour}},
		{"the hub does not get there, and is woken up when it does", lost(func(o *observed) { o.Unreachable = true }),
			recovery{}},
		{"it has not joined, which is another matter", lost(func(o *observed) { o.Joined = false }), recovery{}},
		{"it was given another one a while ago",
			lost(func(o *observed) { o.Token = &tokenSeen{Ends: epoch.Add(time.Minute)} }), recovery{After: time.Minute}},
		{"once was not enough, and it has time", lost(func(o *observed) { tried(o, 1, epoch.Add(-time.Minute)) }),
			recovery{After: 59 * time.Minute}},
		{"once was not enough", lost(func(o *observed) { tried(o, 1, epoch.Add(-time.Hour)) }), recovery{Due: true}},
		{"each time it has twice as long", lost(func(o *observed) { tried(o, 3, epoch) }), recovery{After: 4 * time.Hour}},
		{"but a day at most", lost(func(o *observed) { tried(o, maxRecoveries, epoch); o.Timeouts.Token = 20 * time.Hour }),
			recovery{After: 24 * time.Hour}},
		{"or as long as the credential is good",
			lost(func(o *observed) { tried(o, 4, epoch); o.Timeouts.Token = 30 * time.Hour }),
			recovery{After: 30 * time.Hour}},
		{"it was enough", lost(func(o *observed) { tried(o, maxRecoveries, epoch.AddDate(0, 0, -2)) }),
			recovery{GivenUp: true}},
		{"and is, where the hub does not get there",
			lost(func(o *observed) { tried(o, maxRecoveries, epoch.AddDate(0, 0, -2)); o.Unreachable = true }),
			recovery{GivenUp: true}},
		{"it came back meanwhile, and that credential has ended as well", lost(func(o *observed) {
			tried(o, maxRecoveries, epoch.AddDate(0, 0, -2))
			o.CredentialEnd = epoch
		}), recovery{Due: true}},
	} {
		require.Equal(t, test.want, recoveryOf(test.o), test.reason)
	}
}

func TestRecoveryAfter(t *testing.T) {
	attempts := func(change func(*observed)) int32 {
		after := recoveryAfter(lost(change))
		if after == nil {
			return 0
		}
		require.True(t, after.CredentialExpirationTime.Time.Equal(lost(change).CredentialEnd))
		return after.Attempts
	}
	require.Equal(t, int32(1), attempts(func(*observed) {}))
	require.Equal(t, int32(3), attempts(func(o *observed) { tried(o, 2, epoch) }))
	require.Equal(t, int32(1),
		attempts(func(o *observed) { tried(o, maxRecoveries, epoch); o.Desired.RequestedAt = "now" }),
		"a user has repaired it")
	require.Zero(t, attempts(func(o *observed) { tried(o, 2, epoch); o.Heartbeat.Lost = false }), "it is back")
	require.Zero(t, attempts(func(o *observed) { o.CredentialEnd = epoch.Add(time.Second) }), "it was for another reason")
}

// TestRecoveryEnds checks, for all times of the decisions, that an agent that never connects again is installed at
// most maxRecoveries times for a credential, with increasing pauses.
func TestRecoveryEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := lost(func(*observed) {})
		var at []time.Time
		for range 400 {
			s := next(o)
			switch s.Action {
			case install:
				at = append(at, o.Now)
				o.Install.Last = &v1alpha1.InstallStatus{Hash: o.Desired.Hash, InstalledAt: new(metav1.NewTime(o.Now)),
					Recovery: s.Recovery}
				o.Token = &tokenSeen{Ends: o.Now.Add(o.Timeouts.Token)}
			case discard:
				o.Token = nil
			default:
				if s.After == 0 {
					if len(at) != maxRecoveries || s.Condition == nil || s.Condition.Reason != v1alpha1.ReasonAgentNotReturned {
						t.Fatalf("given up after %d attempts, and shows %v", len(at), s.Condition)
					}
					return
				}
			}
			if rapid.Bool().Draw(t, "early") {
				s.After /= 2
			}
			o.Now = o.Now.Add(s.After)
			if n := len(at); n > 2 && at[n-1].Sub(at[n-2]) < at[n-2].Sub(at[n-3]) {
				t.Fatalf("sooner and sooner: %v", at)
			}
		}
		t.Fatalf("never given up: %v", at)
	})
}
