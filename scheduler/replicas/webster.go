package replicas

import (
	"cmp"
	"math"
	"math/bits"
)

// webster gives out n seats, one after the other to the party of the highest average: its weight divided by 1, 3, 5
// and so on, twice the seats that it has plus one. A party that has reached its limit drops out. Of equal averages,
// that of a party that held the seat before comes first, and then that of the party with fewer seats. It returns the
// seats that no party may have.
//
// It does so without going seat by seat: see [jump].
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
		q.fix()
	}
	return 0
}

// averages is negative when the next seat is a's rather than b's. It is exact: products of 64 bits have 128.
func averages(a, b *party) int {
	aHigh, aLow := bits.Mul64(uint64(a.weight), b.divisor())
	bHigh, bLow := bits.Mul64(uint64(b.weight), a.divisor())
	return cmp.Or(cmp.Compare(bHigh, aHigh), cmp.Compare(bLow, aLow), cmp.Compare(a.isNew(), b.isNew()),
		cmp.Compare(a.seats, b.seats))
}

func (p *party) divisor() uint64 { return 2*uint64(p.seats) + 1 }

// room is how many seats more the party may have.
func (p *party) room() int32 { return p.limit - p.seats }

// holds is 1 if the party has seats already, and else 0.
func (p *party) holds() int { return int(min(p.seats, 1)) }

// isNew is 0 if the party held its next seat before, and 1 if that would be new to it.
func (p *party) isNew() int {
	if p.current > p.seats {
		return 0
	}
	return 1
}

const (
	// rounds bounds the search of jump. It ends after a handful; one that did not would only be slow.
	rounds = 64
	// margin is more than floating point can be wrong by, relative to a number, and next to nothing.
	margin = 1.0 / (1 << 40)
)

// jump gives out most of n seats at once, and returns how many. What it gives is the beginning of what going seat by
// seat would: the seats whose average is at least some threshold, which are no more than n. So the rest can be given
// one by one, and the result is exact although the threshold is a floating-point number.
//
// With a threshold of 1/(2·rate), a party of weight w has the seats that rate·w rounds to: this is the other form
// of Webster's method, and to take the bulk like that and single steps from there is the jump-and-step algorithm of
// Pukelsheim (Proportional Representation, 2nd ed. 2017). The rate is found by Newton's method. Limits lead that
// astray at times, so it is kept between the best rates so far, and halves their distance where it would leave them.
func jump(parties []party, n int64) (given int64) {
	goal, total, contenders := float64(n), 0.0, 0.0
	for i := range parties {
		if p := &parties[i]; p.room() > 0 {
			goal += float64(p.seats)
			total += float64(p.weight)
			contenders++
		}
	}

	// Each seat that is left costs the logarithm of the parties, and each round all of them. Where averages are
	// alike no rate may leave few, but there is always one that leaves no more than a seat for each party.
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
		seats := p.deal(low * (1 - margin))
		given += int64(seats - p.seats)
		p.seats = seats
	}
	return given
}

// tally returns how many seats all parties would get at a rate, and how fast that grows with the rate.
func tally(parties []party, rate float64) (given int64, slope float64) {
	for i := range parties {
		p := &parties[i]
		seats := p.deal(rate)
		given += int64(seats - p.seats)
		if seats < p.limit && float64(p.weight)*rate+0.5 >= float64(p.seats) {
			slope += float64(p.weight)
		}
	}
	return given, slope
}

// deal returns how many seats the party has at a rate: no fewer than it has, and no more than it may have.
func (p *party) deal(rate float64) int32 {
	switch exact := float64(p.weight)*rate + 0.5; {
	case exact < float64(p.seats) || p.room() == 0:
		return p.seats
	case exact >= float64(p.limit):
		return p.limit
	default:
		return int32(exact)
	}
}
