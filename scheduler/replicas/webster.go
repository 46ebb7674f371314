package replicas

import (
	"cmp"
	"math"
	"math/bits"
)

// webster gives n seats to the parties. Each seat goes to the party with the highest average: its weight divided by
// twice its seats plus one. A party that has reached its limit is skipped. If averages are equal, a party that had the
// seat before comes first, and then the party with fewer seats. It returns the number of seats that exceed all limits.
//
// It does not iterate over all seats: see [jump].
func webster(parties []party, n int64) (left int64) {
	room := int64(0)
	for i := range parties {
		if p := &parties[i]; p.weight == 0 {
			p.limit = p.seats
		} else {
			room += int64(p.room())
		}
	}
	if n >= room {
		for i := range parties {
			parties[i].seats = parties[i].limit
		}
		return n - room
	}
	n -= jump(parties, n)
	if n == 0 {
		return 0
	}
	for q := queueOf(parties, averages); n > 0; n-- {
		q.first().seats++
		q.restoreHeap()
	}
	return 0
}

// averages returns a negative number if a gets the next seat before b. It is exact: it compares products of 128 bits.
func averages(a, b *party) int {
	aHigh, aLow := bits.Mul64(uint64(a.weight), b.divisor())
	bHigh, bLow := bits.Mul64(uint64(b.weight), a.divisor())
	return cmp.Or(cmp.Compare(bHigh, aHigh), cmp.Compare(bLow, aLow), cmp.Compare(a.isNew(), b.isNew()),
		cmp.Compare(a.seats, b.seats))
}

func (p *party) divisor() uint64 { return 2*uint64(p.seats) + 1 }

// room returns how many more seats the party may have.
func (p *party) room() int32 { return p.limit - p.seats }

// holds returns 1 if the party has seats, and 0 otherwise.
func (p *party) holds() int { return int(min(p.seats, 1)) }

// isNew returns 0 if the party had its next seat before the division, and 1 otherwise.
func (p *party) isNew() int {
	if p.current > p.seats {
		return 0
	}
	return 1
}

const (
	// rounds limits the iterations of jump. A few suffice; reaching the limit would only make the division slower.
	rounds = 64
	// margin is a relative error that exceeds all floating-point errors and is otherwise negligible.
	margin = 1.0 / (1 << 40)
)

// jump gives most of n seats at once, and returns how many. The result is a prefix of the sequence of single steps: all
// seats whose average is at least a threshold, at most n of them. The remaining seats can be given one by one, so the
// result is exact although the threshold is a floating-point number.
//
// With a threshold of 1/(2·rate), a party of weight w gets rate·w seats, rounded. This is the other form of Webster's
// method. Starting there and continuing with single steps is the jump-and-step algorithm of Pukelsheim (Proportional
// Representation, 2nd ed. 2017). The rate is computed by Newton's method. Because of the limits, a step may leave the
// interval between the best rates so far; it is then replaced by bisection.
func jump(parties []party, n int64) (given int64) {
	goal, total, contenders := float64(n), 0.0, 0.0
	for i := range parties {
		if p := &parties[i]; p.room() > 0 {
			goal += float64(p.seats)
			total += float64(p.weight)
			contenders++
		}
	}

	// Each remaining seat costs O(log parties), and each round costs O(parties). If many averages are equal, there may be
	// no rate that leaves few seats, but there is always a rate that leaves at most one seat per party.
	maxRounds := math.Sqrt(contenders) + 1
	low, high, rate := 0.0, math.Inf(1), goal/total
	for range rounds {
		given, slope := tally(parties, rate)
		missing := float64(n - given)
		if missing < 0 {
			high = rate
		} else if low = rate; missing <= maxRounds {
			break
		}
		if rate += (missing - maxRounds/2) / slope; !(low < rate && rate < high) {
			rate = min(2*low, low+(high-low)/2)
			if low == 0 {
				rate = high / 2
			}
		}
		maxRounds = min(2*maxRounds, max(maxRounds, contenders))
	}

	for i := range parties {
		p := &parties[i]
		seats := p.seatsAt(low * (1 - margin))
		given += int64(seats - p.seats)
		p.seats = seats
	}
	return given
}

// tally returns how many seats all parties would get at a rate, and the derivative by the rate.
func tally(parties []party, rate float64) (given int64, slope float64) {
	for i := range parties {
		p := &parties[i]
		seats := p.seatsAt(rate)
		given += int64(seats - p.seats)
		if seats < p.limit && float64(p.weight)*rate+0.5 >= float64(p.seats) {
			slope += float64(p.weight)
		}
	}
	return given, slope
}

// seatsAt returns the number of seats of the party at a rate, at least its current number and at most its limit.
func (p *party) seatsAt(rate float64) int32 {
	switch exact := float64(p.weight)*rate + 0.5; {
	case exact < float64(p.seats) || p.room() == 0:
		return p.seats
	case exact >= float64(p.limit):
		return p.limit
	default:
		return int32(exact)
	}
}
