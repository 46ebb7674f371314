package failover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestRemember(t *testing.T) {
	at := func(ms, count int) v1alpha1.EvictionCount {
		return v1alpha1.EvictionCount{Time: metav1.NewTime(now.Add(time.Duration(ms) * time.Millisecond)),
			Count: int32(count)}
	}
	limited := v1alpha1.FailoverPolicy{MaxEvictions: new(int32(5))}
	for _, test := range []struct {
		reason  string
		before  []v1alpha1.EvictionCount
		evicted int
		policy  v1alpha1.FailoverPolicy
		after   time.Duration
		want    []string
	}{
		{"the first evictions", nil, 2, limited, 0, []string{"0s: 2"}},
		{"the time is rounded up to a full second", nil, 1, limited, 1200 * time.Millisecond, []string{"2s: 1"}},
		{"evictions in the same second are one entry",
			[]v1alpha1.EvictionCount{at(2000, 1)}, 3, limited, 1700 * time.Millisecond,
			[]string{"2s: 4"}},
		{"an entry older than the period is removed", []v1alpha1.EvictionCount{at(-60000, 1), at(-59000, 2)}, 1, limited, 0,
			[]string{"-59s: 2", "0s: 1"}},
		{"no eviction", []v1alpha1.EvictionCount{at(-5000, 1)}, 0, limited, 0, []string{"-5s: 1"}},
		{"the default rate", []v1alpha1.EvictionCount{at(-5000, 1)}, 1, v1alpha1.FailoverPolicy{}, 0,
			[]string{"-5s: 1", "0s: 1"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var got []string
			for _, e := range Remember(test.before, test.evicted, test.policy, now.Add(test.after)) {
				got = append(got, fmt.Sprintf("%v: %d", e.Time.Sub(now), e.Count))
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemember_KeepsEverything checks for any number of evictions at any times that no period has fewer recorded
// evictions than occurred, and that the input is not changed.
func TestRemember_KeepsEverything(t *testing.T) {
	policy := v1alpha1.FailoverPolicy{MaxEvictions: new(int32(1000)), PeriodSeconds: new(int32(300))}
	rapid.Check(t, func(t *rapid.T) {
		var history []v1alpha1.EvictionCount
		var evictions []time.Time
		clock := now
		for range rapid.IntRange(1, 200).Draw(t, "evictions") {
			clock = clock.Add(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
			before := slices.Clone(history)
			next := Remember(history, 1, policy, clock)
			if !slices.Equal(before, history) {
				t.Fatal("Remember has changed its argument")
			}
			history = next
			evictions = append(evictions, clock)
			if len(history) > v1alpha1.MaxEvictionCounts {
				t.Fatalf("%d entries", len(history))
			}
			later := clock.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "later")) * time.Second)
			want, got := 0, 0
			for _, at := range evictions {
				if later.Sub(at) < period(policy) {
					want++
				}
			}
			for _, e := range recent(history, policy, later) {
				got += int(e.Count)
			}
			if got < want {
				t.Fatalf("%d evictions are recorded, want at least %d", got, want)
			}
		}
	})
}
