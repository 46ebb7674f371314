package scheduler

import (
	"math/bits"
	"slices"
)

// Candidates are the feasible clusters with their scores, from which a [SelectPlugin] drops some.
type Candidates struct {
	snapshot *Snapshot
	left     Set
	scores   []float64
	placed   Set
	kept     Set // must be chosen
	wanted   int
	heap     []int32
	part     []int32
	dropped  map[int]string // the reasons; nil: the caller needs none
}

// Left returns the set of candidates that were not dropped. Only Drop may change it.
func (c *Candidates) Left() Set { return c.left }

// Wanted returns the maximum number of clusters to choose. Negative: all candidates.
func (c *Candidates) Wanted() int { return c.wanted }

// Score returns the weighted sum of all scores of the cluster in a slot.
func (c *Candidates) Score(slot int) float64 { return c.scores[slot] }

// Kept returns the set of clusters that were chosen before and stay, even if a plugin drops them. Constraints apply to
// the clusters that are chosen in addition. The set must not be changed. It is never larger than Wanted, unless all
// clusters are wanted.
func (c *Candidates) Kept() Set { return c.kept }

// Better reports whether the first of two clusters is preferred to the second. Kept clusters come first, then clusters
// with the higher score, then clusters on which the placement runs. If all of that is equal, the name decides.
func (c *Candidates) Better(a, b int) bool {
	if x, y := c.kept.Has(a), c.kept.Has(b); x != y {
		return x
	}
	if c.scores[a] != c.scores[b] {
		return c.scores[a] > c.scores[b]
	}
	if x, y := c.placed.Has(a), c.placed.Has(b); x != y {
		return x
	}
	return c.snapshot.rank[a] < c.snapshot.rank[b]
}

// Drop removes a cluster from the candidates. The reason, as in [Reject], is called only if the caller needs reasons.
func (c *Candidates) Drop(slot int, reason func() string) {
	c.left.Remove(slot)
	if c.dropped != nil {
		c.dropped[slot] = reason()
	}
}

// Keep drops all candidates that are not in the set, as if Drop were called for each of them.
func (c *Candidates) Keep(set Set, reason func(slot int) string) {
	if c.dropped != nil {
		others := c.left.Clone()
		others.Discard(set)
		for slot := range others.All() {
			c.dropped[slot] = reason(slot)
		}
	}
	c.left.Retain(set)
}

// Best returns the n best clusters of a set, the best first. The next call overwrites the slice.
func (c *Candidates) Best(of Set, n int) []int32 {
	best := c.heap[:0]
	if len(c.kept.words) > 0 {
		c.part = c.best(c.part[:0], of, n, func(i int) uint64 { return c.kept.words[i] })
		best = append(best, c.part...)
		c.part = c.best(c.part[:0], of, n-len(best), func(i int) uint64 { return ^c.kept.words[i] })
		best = append(best, c.part...)
	} else {
		best = c.best(best, of, n, nil)
	}
	c.heap = best
	return best
}

// best returns the n best clusters of a set, the best first. It reuses the memory of heap. For each word of the set,
// mask returns the bits to consider. Nil: all.
func (c *Candidates) best(heap []int32, of Set, n int, mask func(i int) uint64) []int32 {
	// A heap of the best clusters so far, with the worst of them at the root. Most clusters rank below the root. The loop
	// detects this with one comparison, or two if the scores are equal.
	if n <= 0 {
		return heap
	}
	var worst float64
	var place int32
	scores, rank := c.scores, c.snapshot.rank
	for i, word := range of.words {
		if mask != nil {
			word &= mask(i)
		}
		for ; word != 0; word &= word - 1 {
			slot := int32(i*wordBits + bits.TrailingZeros64(word))
			if len(heap) < n {
				heap = append(heap, slot)
				c.up(heap)
			} else {
				score := scores[slot]
				if score < worst || score == worst && rank[slot] > place && !c.placed.Has(int(slot)) {
					continue
				}
				if !c.Better(int(slot), int(heap[0])) {
					continue
				}
				heap[0] = slot
				c.down(heap)
			}
			worst, place = scores[heap[0]], rank[heap[0]]
		}
	}
	slices.SortFunc(heap, func(a, b int32) int {
		if c.Better(int(a), int(b)) {
			return -1
		}
		return 1
	})
	return heap
}

// up restores the heap order for the last element.
func (c *Candidates) up(heap []int32) {
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !c.Better(int(heap[parent]), int(heap[i])) {
			return
		}
		heap[parent], heap[i] = heap[i], heap[parent]
		i = parent
	}
}

// down restores the heap order for the first element.
func (c *Candidates) down(heap []int32) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && c.Better(int(heap[child]), int(heap[right])) {
			child = right
		}
		if !c.Better(int(heap[i]), int(heap[child])) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
