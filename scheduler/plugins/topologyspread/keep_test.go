package topologyspread

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestEndsPlus checks that plus returns the same ends as counting again.
func TestEndsPlus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		taken := append([]int{0}, rapid.SliceOfN(rapid.IntRange(0, 3), 1, 4).Draw(t, "taken")...)
		a := &axis{constraint: constraint{minDomains: rapid.IntRange(0, 4).Draw(t, "minDomains")}, domains: len(taken) - 1}
		for range taken {
			a.sizes = append(a.sizes, 9)
		}
		part := rapid.IntRange(1, len(taken)-1).Draw(t, "part")
		before := a.ends(taken)
		sum := before.plus(taken[part])
		taken[part]++
		after := a.ends(taken)
		require.Equal(t, []int{after.most, after.fewest}, []int{sum.most, sum.fewest}, "%v, one more cluster in part %d",
			before, part)
	})
}
