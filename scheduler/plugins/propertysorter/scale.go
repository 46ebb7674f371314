package propertysorter

import "github.com/muster-sdk/muster/scheduler"

// scale turns the numbers of a sorter into scores.
type scale struct {
	numbers []float64 // by slot
	// last is the number that gets 0, and span how far from there the first is: negative, if the least comes first.
	last, span float64
	share      float64
}

func newScale(numbers []float64, feasible scheduler.Set, ascending bool) scale {
	least, greatest := farthest, -farthest // what all numbers are between
	for slot := range feasible.All() {
		n := numbers[slot]
		if n > greatest { // which none is not
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

// score divides before it multiplies, so that the best cluster gets exactly MaxScore, and no cluster gets more.
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
