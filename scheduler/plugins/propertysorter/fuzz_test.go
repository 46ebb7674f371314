package propertysorter_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// FuzzNumber sorts by arbitrary text, and checks that scores are valid numbers.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"", "many", "NaN", "Inf", "-0", "1e2000000000", "1e-2000000000", "+", "\xff"} {
		f.Add(text, "1")
	}
	f.Add("300m", "0.3")
	f.Add("-9e99", "9e99")
	f.Add("9007199254740993", "9007199254740992")
	f.Add("8Ei", "9223372036854775807")
	s := newScheduler(f)
	descending := policy(f, v1alpha1.PropertySorter{Name: "cost"})
	f.Fuzz(func(t *testing.T, a, b string) {
		result, err := s.Schedule(context.Background(), snapshotOf(cost("a", a), cost("b", b)),
			&scheduler.Request{Policy: descending})
		require.NoError(t, err)
		require.Len(t, result.Chosen, 2)
		x, errX := v1alpha1.ParseQuantity(a)
		y, errY := v1alpha1.ParseQuantity(b)
		scores := map[string]float64{}
		for _, choice := range result.Chosen {
			scores[choice.Cluster.Name] = choice.Score
		}
		switch {
		case errX != nil:
			require.Zero(t, scores["a"])
		case errY != nil:
			require.Zero(t, scores["b"])
		case x.Cmp(y) >= 0:
			require.GreaterOrEqual(t, scores["a"], scores["b"])
		default:
			require.LessOrEqual(t, scores["a"], scores["b"])
		}
	})
}
