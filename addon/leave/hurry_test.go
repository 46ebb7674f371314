package leave

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestHurry(t *testing.T) {
	t.Parallel()
	const seen, unseen = true, false
	never := metav1.Time{}
	begun := metav1.NewTime(epoch)
	for _, test := range []struct {
		reason   string
		deleted  metav1.Time
		deadline *int32
		observed bool
		after    time.Duration
		want     *int32 // the deadline
		let      bool   // go
	}{
		{"its controller is at work", begun, nil, seen, time.Hour, new(int32(3600)), false},
		{"a deadline to come ends now", begun, new(int32(86400)), seen, time.Hour, new(int32(3600)), false},
		{"part of a second is past already", begun, nil, seen, 1900 * time.Millisecond, new(int32(1)), false},
		{"a deadline is set once", begun, new(int32(3600)), unseen, time.Hour + time.Second, new(int32(3600)), false},
		{"nor is its controller late yet", begun, new(int32(3600)), unseen, time.Hour + gracePeriod - 1, new(int32(3600)),
			false},
		{"it is", begun, new(int32(3600)), unseen, time.Hour + gracePeriod, new(int32(3600)), true},
		{"also one that has seen all", begun, new(int32(3600)), seen, time.Hour + gracePeriod, new(int32(3600)), true},
		{"a user deleted it", begun, new(int32(0)), seen, gracePeriod, new(int32(0)), true},
		{"no controller observes it", begun, nil, unseen, gracePeriod, nil, true},
		{"a controller may observe it", begun, nil, unseen, gracePeriod - 1, new(int32(gracePeriod/time.Second) - 1), false},
		{"no controller, with a later deadline", begun, new(int32(900)), unseen, gracePeriod, new(int32(900)), true},
		{"the namespace does not go yet", never, nil, seen, time.Hour, new(int32(0)), false},
		{"and no second deadline is set", never, new(int32(0)), seen, time.Hour, new(int32(0)), false},
		{"the clock is behind the API server's", begun, nil, seen, -time.Hour, new(int32(0)), false},
		{"the API takes no more than a day", begun, nil, seen, 30 * time.Hour, new(int32(86400)), false},
		{"after which it is let go", begun, new(int32(86400)), seen, 30 * time.Hour, new(int32(86400)), true},
	} {
		addon := memberAddon(test.deadline, test.observed)
		if test.deleted != never {
			addon.DeletionTimestamp = &test.deleted
		}
		before := addon.DeepCopy()
		changed := forceStep(addon, epoch.Add(test.after))
		require.Equal(t, test.want, addon.Spec.RemovalDeadlineSeconds, test.reason)
		require.Equal(t, test.let, len(addon.Finalizers) == 1, test.reason)
		require.Contains(t, addon.Finalizers, "example.com/other", test.reason)
		require.Equal(t, !equal(before, addon), changed, test.reason)
	}
}

func equal(a, b *v1alpha1.MemberAddon) bool {
	return len(a.Finalizers) == len(b.Finalizers) && seconds(a) == seconds(b)
}

func seconds(a *v1alpha1.MemberAddon) int32 {
	if a.Spec.RemovalDeadlineSeconds == nil {
		return math.MinInt32
	}
	return *a.Spec.RemovalDeadlineSeconds
}

func memberAddon(deadline *int32, observed bool) *v1alpha1.MemberAddon {
	addon := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Generation: 2,
		Finalizers: []string{v1alpha1.MemberAddonFinalizer, "example.com/other"}}}
	addon.Spec.RemovalDeadlineSeconds = deadline
	if observed {
		addon.Status.ObservedGeneration = 2
	}
	return addon
}

// For every initial state and any number of forced leaves: a deadline is set once, a controller that may be running has
// its time, and in the end muster's finalizer is removed.
func TestForce_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		addon := memberAddon(nil, rapid.Bool().Draw(t, "noticed"))
		addon.DeletionTimestamp = &metav1.Time{Time: epoch}
		if rapid.Bool().Draw(t, "has a deadline") {
			addon.Spec.RemovalDeadlineSeconds = new(rapid.Int32Range(0, maxDeadlineSeconds).Draw(t, "deadline"))
		}
		now := epoch.Add(time.Duration(rapid.Int64Range(-int64(time.Minute), int64(8*24*time.Hour)).Draw(t, "begins")))
		begins, attended, reported := now, observed(addon), 0
		for len(addon.Finalizers) == 2 {
			before := addon.DeepCopy()
			if changed := forceStep(addon, now); changed != !equal(before, addon) {
				t.Fatalf("it says that it has changed something: %t", changed)
			}
			if !equal(before, addon) {
				addon.Generation++ // without a reconcile
			}
			if seconds(before) != seconds(addon) {
				reported++
				deadline := epoch.Add(time.Duration(seconds(addon)) * time.Second)
				if deadline.After(now) && now.After(epoch) || seconds(addon) < 0 || seconds(addon) > maxDeadlineSeconds {
					t.Fatalf("%s after it was deleted it has %d seconds", now.Sub(epoch), seconds(addon))
				}
			}
			if len(addon.Finalizers) == 1 && now.Sub(epoch) < gracePeriod {
				t.Fatalf("its controller had %s", now.Sub(epoch))
			}
			// Deadlines are in whole seconds, of which the last is cut.
			if len(addon.Finalizers) == 1 && attended && reported > 0 && now.Sub(begins) < gracePeriod-time.Second &&
				begins.Sub(epoch) < maxDeadlineSeconds*time.Second {
				t.Fatalf("a controller that was there had %s", now.Sub(begins))
			}
			now = now.Add(time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Second)).Draw(t, "again after")))
			if now.Sub(begins) > time.Minute+2*gracePeriod {
				t.Fatal("it is never let go")
			}
		}
		if reported > 1 {
			t.Fatalf("the deadline was set %d times", reported)
		}
	})
}
