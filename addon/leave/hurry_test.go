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

func TestForceStep(t *testing.T) {
	t.Parallel()
	const observed, unobserved = true, false
	never := metav1.Time{}
	deleted := metav1.NewTime(epoch)
	for _, test := range []struct {
		reason   string
		deletion metav1.Time
		deadline *int32
		observed bool
		after    time.Duration
		want     *int32 // the deadline
		released bool   // the finalizer is removed
	}{
		{"a running controller gets a deadline of now", deleted, nil, observed, time.Hour, new(int32(3600)), false},
		{"a later deadline is shortened to now", deleted, new(int32(86400)), observed, time.Hour, new(int32(3600)), false},
		{"the deadline is rounded down to seconds", deleted, nil, observed, 1900 * time.Millisecond, new(int32(1)), false},
		{"a deadline is not set a second time",
			deleted, new(int32(3600)), unobserved, time.Hour + time.Second, new(int32(3600)), false},
		{"the grace period of an unobserved deadline has not passed",
			deleted, new(int32(3600)), unobserved, time.Hour + gracePeriod - 1, new(int32(3600)),
			false},
		{"the grace period of an unobserved deadline has passed",
			deleted, new(int32(3600)), unobserved, time.Hour + gracePeriod, new(int32(3600)), true},
		{"the grace period of an observed deadline has passed",
			deleted, new(int32(3600)), observed, time.Hour + gracePeriod, new(int32(3600)), true},
		{"a MemberAddon that a user deleted with deadline 0",
			deleted, new(int32(0)), observed, gracePeriod, new(int32(0)), true},
		{"no controller has observed the deletion within the grace period", deleted, nil, unobserved, gracePeriod, nil, true},
		{"a controller can still observe the deletion",
			deleted, nil, unobserved, gracePeriod - 1, new(int32(gracePeriod/time.Second) - 1), false},
		{"no controller has observed a later deadline within the grace period",
			deleted, new(int32(900)), unobserved, gracePeriod, new(int32(900)), true},
		{"the MemberAddon is not being deleted", never, nil, observed, time.Hour, new(int32(0)), false},
		{"the MemberAddon is not being deleted and has a deadline",
			never, new(int32(0)), observed, time.Hour, new(int32(0)), false},
		{"the clock is behind the clock of the API server", deleted, nil, observed, -time.Hour, new(int32(0)), false},
		{"the deadline is at most a day", deleted, nil, observed, 30 * time.Hour, new(int32(86400)), false},
		{"the finalizer is removed after a deadline of a day",
			deleted, new(int32(86400)), observed, 30 * time.Hour, new(int32(86400)), true},
	} {
		addon := memberAddon(test.deadline, test.observed)
		if test.deletion != never {
			addon.DeletionTimestamp = &test.deletion
		}
		before := addon.DeepCopy()
		changed := forceStep(addon, epoch.Add(test.after))
		require.Equal(t, test.want, addon.Spec.RemovalDeadlineSeconds, test.reason)
		require.Equal(t, test.released, len(addon.Finalizers) == 1, test.reason)
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

// TestForce_Properties checks every initial state and any number of forced leaves: a deadline is set once, a controller
// that may be running has a grace period, and finally the finalizer of muster is removed.
func TestForce_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		addon := memberAddon(nil, rapid.Bool().Draw(t, "observed"))
		addon.DeletionTimestamp = &metav1.Time{Time: epoch}
		if rapid.Bool().Draw(t, "has a deadline") {
			addon.Spec.RemovalDeadlineSeconds = new(rapid.Int32Range(0, maxDeadlineSeconds).Draw(t, "deadline"))
		}
		now := epoch.Add(time.Duration(rapid.Int64Range(-int64(time.Minute), int64(8*24*time.Hour)).Draw(t, "begins")))
		begins, attended, reported := now, observed(addon), 0
		for len(addon.Finalizers) == 2 {
			before := addon.DeepCopy()
			if changed := forceStep(addon, now); changed != !equal(before, addon) {
				t.Fatalf("changed: got %t, want the opposite", changed)
			}
			if !equal(before, addon) {
				addon.Generation++ // without a reconcile
			}
			if seconds(before) != seconds(addon) {
				reported++
				deadline := epoch.Add(time.Duration(seconds(addon)) * time.Second)
				if deadline.After(now) && now.After(epoch) || seconds(addon) < 0 || seconds(addon) > maxDeadlineSeconds {
					t.Fatalf("%s after the deletion: unexpected deadline of %d seconds", now.Sub(epoch), seconds(addon))
				}
			}
			if len(addon.Finalizers) == 1 && now.Sub(epoch) < gracePeriod {
				t.Fatalf("the finalizer was removed %s after the deletion, before the grace period", now.Sub(epoch))
			}
			// Deadlines are rounded down to seconds.
			if len(addon.Finalizers) == 1 && attended && reported > 0 && now.Sub(begins) < gracePeriod-time.Second &&
				begins.Sub(epoch) < maxDeadlineSeconds*time.Second {
				t.Fatalf("the finalizer was removed %s after the first Force, before the grace period", now.Sub(begins))
			}
			now = now.Add(time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Second)).Draw(t, "interval")))
			if now.Sub(begins) > time.Minute+2*gracePeriod {
				t.Fatal("want the finalizer to be removed")
			}
		}
		if reported > 1 {
			t.Fatalf("want at most one deadline, got %d", reported)
		}
	})
}
