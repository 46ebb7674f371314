package propertysorter

import "github.com/muster-sdk/muster/scheduler"

// scale converts the numbers of a sorter to scores.
type scale struct {
	numbers []float64 // by slot
	// last is the number with score 0. Span is the difference of the best number to it, negative if the smallest is best.
	last, span float64
	share      float64
}

func newScale(numbers []float64, feasible scheduler.Set, ascending bool) scale {
	least, greatest := farthest, -farthest // limits of all numbers
	for slot := range feasible.All() {
		n := numbers[slot]
		if n > greatest { // false for none
			greatest = n
		}
		if n < least && n != none {
			least = n
		}
	}
	if ascending {
		return scale{numbers: numbers, last: greatest, span: least - greatest}
	}
	return scale{numbers: numbers, last: least, span: greatest - least}
}

// score divides before it multiplies, so that the best cluster gets exactly MaxScore and no cluster gets more.
func (s *scale) score(number float64) float64 {
	switch {
	case number == none:
		return 0
	case s.span == 0:
		return scheduler.MaxScore
	default:
		return (number - s.last) / s.span * scheduler.MaxScore
	}
}
