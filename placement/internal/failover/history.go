package failover

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Remember adds evictions to the earlier ones, and drops those before the policy's period. The result has at most
// [v1alpha1.MaxEvictionCounts] entries. If there are more, it merges the entries that are closest to each other, at the
// later time of both. So the rate may be overestimated, but is never underestimated.
func Remember(before []v1alpha1.EvictionCount, evicted int, policy v1alpha1.FailoverPolicy,
	now time.Time) []v1alpha1.EvictionCount {
	history := recent(before, policy, now)
	if evicted > 0 {
		// Stored times have whole seconds. The time is rounded up, so that no later eviction counts as an earlier one.
		at := now.Truncate(time.Second)
		if at.Before(now) {
			at = at.Add(time.Second)
		}
		history = append(history, v1alpha1.EvictionCount{Time: metav1.NewTime(at), Count: int32(evicted)})
		slices.SortStableFunc(history, func(a, b v1alpha1.EvictionCount) int { return a.Time.Compare(b.Time.Time) })
	}
	for i := 1; i < len(history); {
		if history[i].Time.Equal(&history[i-1].Time) {
			history = mergeWithPrevious(history, i)
		} else {
			i++
		}
	}
	for len(history) > v1alpha1.MaxEvictionCounts {
		closest := 1
		for i := range history[1:] {
			if gap(history, i+1) < gap(history, closest) {
				closest = i + 1
			}
		}
		history = mergeWithPrevious(history, closest)
	}
	return history
}

func gap(history []v1alpha1.EvictionCount, i int) time.Duration {
	return history[i].Time.Sub(history[i-1].Time.Time)
}

// mergeWithPrevious merges an entry with the one before it, at the later time.
func mergeWithPrevious(history []v1alpha1.EvictionCount, i int) []v1alpha1.EvictionCount {
	history[i].Count += history[i-1].Count
	return slices.Delete(history, i-1, i)
}

// recent returns the evictions of the period that ends now, the oldest first.
func recent(history []v1alpha1.EvictionCount, policy v1alpha1.FailoverPolicy, now time.Time) []v1alpha1.EvictionCount {
	var counted []v1alpha1.EvictionCount
	for _, e := range history {
		if now.Sub(e.Time.Time) < period(policy) {
			counted = append(counted, e)
		}
	}
	slices.SortFunc(counted, func(a, b v1alpha1.EvictionCount) int { return a.Time.Compare(b.Time.Time) })
	return counted
}

func maxEvictions(policy v1alpha1.FailoverPolicy) int {
	if n := policy.MaxEvictions; n != nil {
		return int(*n)
	}
	return defaultMaxEvictions
}

func period(policy v1alpha1.FailoverPolicy) time.Duration {
	if s := policy.PeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultPeriod
}
