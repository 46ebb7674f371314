package jointoken

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func joinToken(spec v1alpha1.JoinTokenSpec, status v1alpha1.JoinTokenStatus) *v1alpha1.JoinToken {
	return &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Name: "east", Namespace: "muster-registration",
			CreationTimestamp: metav1.NewTime(start)},
		Spec: spec, Status: status,
	}
}

func TestPlan(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	const ready, expired, usedUp, invalid = v1alpha1.ReasonReady, v1alpha1.ReasonExpired, v1alpha1.ReasonUsedUp,
		v1alpha1.ReasonInvalidLabel
	ttl := func(d time.Duration) v1alpha1.JoinTokenSpec {
		return v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(d / time.Second))}
	}
	seconds := func(n int64) v1alpha1.JoinTokenSpec { return v1alpha1.JoinTokenSpec{TTLSeconds: &n} }
	at := func(d time.Duration) time.Time { return start.Add(d) }
	fresh := func(issued, life time.Duration) existing {
		return existing{Usable: true, IssuedAt: at(issued), Lifetime: life}
	}
	own := func(expires time.Duration) existing {
		credential := fresh(0, 0)
		if credential.Adopted = true; expires > 0 {
			credential.Expires = at(expires)
		}
		return credential
	}
	since := func(reason string, d time.Duration, uses int32) v1alpha1.JoinTokenStatus {
		return v1alpha1.JoinTokenStatus{Uses: uses, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason,
			LastTransitionTime: metav1.NewTime(at(d)),
		}}}
	}
	gone := func(d time.Duration) v1alpha1.JoinTokenStatus {
		status := since(usedUp, 0, 2)
		status.UsedUpTime = new(metav1.NewTime(at(d)))
		return status
	}
	failed := gone(hour)
	failed.Conditions[0].Reason, failed.Conditions[0].LastTransitionTime = v1alpha1.ReasonFailed,
		metav1.NewTime(at(2*hour))
	two := v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](2)}
	bad := v1alpha1.JoinTokenSpec{Labels: map[string]string{"kubernetes.io/x": "y"}, TTLSeconds: ptr.To[int64](3600)}
	none := v1alpha1.JoinTokenStatus{}

	for _, test := range []struct {
		reason     string
		spec       v1alpha1.JoinTokenSpec
		status     v1alpha1.JoinTokenStatus
		credential existing
		now        time.Duration
		want       step
	}{
		{"a new token", v1alpha1.JoinTokenSpec{}, none, existing{}, 0,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(0)}},
		{"a new token with a credential TTL", v1alpha1.JoinTokenSpec{CredentialTTLSeconds: 600}, none, existing{}, 0,
			step{Action: issue, Reason: ready, Lifetime: 600 * time.Second, Again: at(0)}},
		{"a credential before half of its lifetime", v1alpha1.JoinTokenSpec{}, none, fresh(0, day), day/2 - 1,
			step{Action: keep, Reason: ready, Again: at(day / 2)}},
		{"missing values before half of the lifetime", v1alpha1.JoinTokenSpec{}, none,
			existing{Usable: true, Incomplete: true, IssuedAt: at(0), Lifetime: day}, hour,
			step{Action: complete, Reason: ready, Again: at(day / 2)}},
		{"missing values after half of the lifetime", v1alpha1.JoinTokenSpec{}, none,
			existing{Usable: true, Incomplete: true, IssuedAt: at(0), Lifetime: day}, day / 2,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(day / 2)}},
		{"a credential after half of its lifetime", v1alpha1.JoinTokenSpec{}, none, fresh(0, day), day / 2,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(day / 2)}},
		{"a credential with a shorter lifetime than requested", v1alpha1.JoinTokenSpec{}, none, fresh(0, hour), hour / 2,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(hour / 2)}},
		{"a shortened credential TTL applies to the existing credential", v1alpha1.JoinTokenSpec{CredentialTTLSeconds: 3600},
			none,
			fresh(0, day), hour / 2,
			step{Action: issue, Reason: ready, Lifetime: hour, Again: at(hour / 2)}},
		{"an unusable credential", v1alpha1.JoinTokenSpec{}, none,
			existing{IssuedAt: at(0), Lifetime: day}, 1,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(1)}},
		{"a credential issued in the future", v1alpha1.JoinTokenSpec{}, none,
			fresh(hour, day), 0,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(0)}},

		{"a TTL of zero never ends", seconds(0), none, fresh(0, day), hour,
			step{Action: keep, Reason: ready, Again: at(day / 2)}},
		{"a negative TTL never ends", seconds(-5), none, fresh(0, day), hour,
			step{Action: keep, Reason: ready, Again: at(day / 2)}},
		{"a TTL beyond the range of time never ends", seconds(math.MaxInt64), none, fresh(0, day), hour,
			step{Action: keep, Reason: ready, Again: at(day / 2)}},
		{"a credential ends with its token and the grace period", ttl(hour), none, existing{}, 0,
			step{Action: issue, Reason: ready, Lifetime: hour + answerGrace, End: at(hour), Again: at(0)}},
		{"a credential with the maximum lifetime is not renewed", ttl(hour), none, fresh(0, hour+answerGrace), hour - 1,
			step{Action: keep, Reason: ready, End: at(hour), Again: at(hour)}},
		{"the lifetime of the last credential is rounded up", ttl(hour), none, existing{}, hour - 1,
			step{Action: issue, Reason: ready, Lifetime: answerGrace + time.Second, End: at(hour), Again: at(hour - 1)}},
		{"an expired token", ttl(hour), none, fresh(0, hour+answerGrace), hour,
			step{Action: withdraw, Reason: expired, End: at(hour), Again: at(hour + answerGrace)}},
		{"an expired token before the end of the grace period", ttl(hour), none, existing{}, hour + answerGrace - 1,
			step{Action: withdraw, Reason: expired, End: at(hour), Again: at(hour + answerGrace)}},
		{"an expired token after the grace period", ttl(hour), none, existing{}, hour + answerGrace,
			step{Action: remove, Reason: expired, End: at(hour)}},
		{"a prolonged token", ttl(2 * hour), since(expired, hour, 0), existing{},
			hour + answerGrace,
			step{Action: issue, Reason: ready, Lifetime: hour, End: at(2 * hour), Again: at(hour + answerGrace)}},

		{"one use remains", two, v1alpha1.JoinTokenStatus{Uses: 1}, fresh(0, day), 0,
			step{Action: keep, Reason: ready, Again: at(day / 2)}},
		{"the last use", two, v1alpha1.JoinTokenStatus{Uses: 2}, fresh(0, day), hour,
			step{Action: withdraw, Reason: usedUp, UsedUp: at(hour), Again: at(hour + answerGrace)}},
		{"a used-up token before the end of the grace period", two, gone(hour), existing{}, hour + answerGrace - 1,
			step{Action: withdraw, Reason: usedUp, UsedUp: at(hour), Again: at(hour + answerGrace)}},
		{"a used-up token after the grace period", two, gone(hour), existing{}, hour + answerGrace,
			step{Action: remove, Reason: usedUp, UsedUp: at(hour)}},
		{"a used-up token after the grace period, with a failure in between", two, failed, existing{}, hour + answerGrace,
			step{Action: remove, Reason: usedUp, UsedUp: at(hour)}},
		{"the last use of a token that was not ready for another reason", two, since(v1alpha1.ReasonFailed, 0, 2), existing{},
			hour,
			step{Action: withdraw, Reason: usedUp, UsedUp: at(hour), Again: at(hour + answerGrace)}},
		{"a lowered maxUses", two, v1alpha1.JoinTokenStatus{Uses: 7}, fresh(0, day), 0,
			step{Action: withdraw, Reason: usedUp, UsedUp: at(0), Again: at(answerGrace)}},
		{"a raised maxUses", v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](3)}, gone(0), existing{}, hour,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(hour)}},

		{"an adopted token is not renewed", v1alpha1.JoinTokenSpec{}, none, own(0), 1000 * hour,
			step{Action: keep, Reason: ready}},
		{"an adopted token with an expiration", v1alpha1.JoinTokenSpec{}, none, own(5 * hour), hour,
			step{Action: keep, Reason: ready, Again: at(5 * hour)}},
		{"an adopted token that expires after the JoinToken", ttl(2 * hour), none, own(5 * hour), hour,
			step{Action: keep, Reason: ready, End: at(2 * hour), Again: at(2 * hour)}},
		{"an adopted token without an expiration, and a JoinToken with one", ttl(2 * hour), none, own(0), hour,
			step{Action: keep, Reason: ready, End: at(2 * hour),
				Again: at(2 * hour)}},
		{"an adopted token issued in the future", v1alpha1.JoinTokenSpec{}, none, own(0), -hour,
			step{Action: keep, Reason: ready}},
		{"an adopted token that is not in the Secret", v1alpha1.JoinTokenSpec{}, none, existing{Adopted: true}, hour,
			step{Action: issue, Reason: ready, Lifetime: day, Again: at(hour)}},
		{"an unusable adopted token", ttl(2 * hour), none, existing{Problem: "The Secret lacks a usage"}, hour,
			step{Action: remove, Reason: v1alpha1.ReasonBootstrapTokenUnusable, End: at(2 * hour), Again: at(2 * hour)}},
		{"an expired JoinToken with a missing adopted token", ttl(hour), none, existing{Problem: "The Secret is gone"},
			hour + answerGrace,
			step{Action: remove, Reason: expired, End: at(hour)}},

		{"a reserved label", bad, none, fresh(0, day), 0,
			step{Action: withdraw, Reason: invalid, End: at(hour), Again: at(hour)}},
		{"a reserved label of an expired token", bad, none, existing{}, hour + answerGrace,
			step{Action: remove, Reason: expired, End: at(hour)}},
	} {
		got := plan(joinToken(test.spec, test.status), test.credential, at(test.now))
		require.NotEmpty(t, got.Message, test.reason)
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(step{}, "Message")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// TestPlan_KeepsTokensValid checks, for all lifetimes, that a token has a valid credential until it ends, and is not
// renewed more often than necessary.
func TestPlan_KeepsTokensValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(label string, low, high int64) int64 { return rapid.Int64Range(low, high).Draw(t, label) }
		spec := v1alpha1.JoinTokenSpec{CredentialTTLSeconds: seconds("credential TTL", 600, 100_000)}
		if rapid.Bool().Draw(t, "ends") {
			spec.TTLSeconds = new(seconds("TTL", 1, 1_000_000))
		}
		longest := time.Duration(seconds("API server grants", 600, 100_000)) * time.Second
		late := time.Duration(seconds("queue", 0, 5)) * time.Second
		token, credential := joinToken(spec, v1alpha1.JoinTokenStatus{}), existing{}
		end, stop := endOf(token), start.Add(200_000*time.Second)

		issued := 0
		for now := start; now.Before(stop); {
			step := plan(token, credential, now)
			if step.Action == issue {
				issued++
				credential = existing{Usable: true, IssuedAt: now, Lifetime: min(step.Lifetime, longest)}
				if step.Lifetime < 600*time.Second {
					t.Fatalf("the requested lifetime is %s: want at least 600s", step.Lifetime)
				}
				if expires := now.Add(step.Lifetime); !end.IsZero() && expires.After(end.Add(answerGrace+time.Second)) {
					t.Fatalf("the credential expires at %s, after the token's end at %s and the grace period", expires, end)
				}
			}
			if ended := !end.IsZero() && !now.Before(end); ended != (step.Action == withdraw || step.Action == remove) {
				t.Fatalf("%s at %s, the end is %s", step.Action, now, end)
			}
			if step.Action == remove {
				break
			}
			if step.Action == issue {
				if step.Again != now {
					t.Fatalf("credential issued at %s: the next plan is at %s, want immediately", now, step.Again)
				}
				if next := plan(token, credential, now); next.Action == issue {
					t.Fatalf("a second credential is issued at %s", now)
				}
				continue
			}
			if !step.Again.After(now) {
				t.Fatalf("at %s: the next plan is at %s, want a later time", now, step.Again)
			}
			now = step.Again.Add(late)
			expires := credential.IssuedAt.Add(credential.Lifetime)
			if (end.IsZero() || now.Before(end)) && expires.Before(now) {
				t.Fatalf("no valid credential at %s: it expired at %s", now, expires)
			}
		}
		lived := stop.Sub(start)
		if !end.IsZero() {
			lived = min(lived, end.Sub(start))
		}
		life := min(longest, wanted(token))
		if most := int(lived/(life/2)) + 1; issued > most {
			t.Fatalf("%d credentials in %s with a lifetime of %s: too many", issued, lived, life)
		}
	})
}
