package replicas

import "cmp"

// Divide computes the number of replicas of each cluster. It is a pure function, and may be called concurrently. Equal
// requests have equal results, independently of the order of their clusters.
//
// For an invalid Request it returns a [*field.Error] with the invalid field, such as "clusters[2].weight: Invalid
// value: -1: must not be negative", and no Result. Callers must then keep the previous division: an empty Result would
// remove the workload.
func Divide(r Request) (Result, error) {
	order, err := check(r)
	if err != nil {
		return Result{}, err
	}
	parties := enter(r, order)
	left := int64(r.Replicas)
	switch r.Strategy {
	case Duplicated:
		left = duplicate(parties, r.Replicas)
	case StaticWeight:
		left = webster(parties, left)
	case DynamicWeight:
		change := keep(parties, r)
		setWeights(parties, change)
		left = webster(parties, change.more)
	case Aggregated:
		left = fill(parties, keep(parties, r).more)
	}

	result := Result{Shares: make([]Share, len(parties)), Unplaced: left}
	for i := range parties {
		result.Shares[i] = Share{r.Clusters[at(order, i)].Name, parties[i].seats}
	}
	return result, nil
}

// party is a cluster in a division. The replicas are called seats, as in the literature on the method.
type party struct {
	weight  int64  // with 0 it gets no further seats
	rank    uint64 // breaks ties: the lower rank first, and then the order by name
	current int32  // the seats before the division
	seats   int32  // the seats in this division
	limit   int32  // the maximum of seats
}

// enter returns the parties by name, without seats.
func enter(r Request, order []int32) []party {
	parties := make([]party, len(r.Clusters))
	for i := range parties {
		c := &r.Clusters[at(order, i)]
		parties[i] = party{weight: c.Weight, current: c.Current, limit: c.Capacity}
		if r.Key != "" {
			parties[i].rank = hash(r.Key, c.Name)
		}
	}
	return parties
}

func duplicate(parties []party, replicas int32) (missing int64) {
	for i := range parties {
		p := &parties[i]
		p.seats = min(replicas, p.limit)
		missing += int64(replicas - p.seats)
	}
	return missing
}

// change is the division that remains after the parties have kept their current seats.
type change struct {
	more int64 // seats to divide
	// shrinks means that the current seats are too many: all seats are divided again, and no party gets more than before.
	shrinks bool
}

// keep gives the parties their current seats, unless the request is Fresh. If the current seats are too many, it gives
// none and limits each party to its current seats.
func keep(parties []party, r Request) change {
	replicas := int64(r.Replicas)
	if r.Fresh {
		return change{more: replicas}
	}
	existing := int64(0)
	for i := range parties {
		existing += int64(parties[i].existing())
	}
	for i := range parties {
		p := &parties[i]
		if existing > replicas {
			p.limit = p.existing()
		} else {
			p.seats = p.existing()
		}
	}
	if existing > replicas {
		return change{more: replicas, shrinks: true}
	}
	return change{more: replicas - existing}
}

// existing returns the current seats of the party that are within its limit.
func (p *party) existing() int32 { return min(p.current, p.limit) }

// setWeights sets the weights to the limits. The weight of an unbounded party is the largest limit of the others. A
// larger weight would be a guess, and would give all seats to the one cluster whose capacity is unknown.
func setWeights(parties []party, c change) {
	known := int32(0)
	for i := range parties {
		if limit := parties[i].limit; limit != Unbounded {
			known = max(known, limit)
		}
	}
	for i := range parties {
		p := &parties[i]
		p.weight = int64(p.limit)
		if p.limit == Unbounded && !c.shrinks {
			p.weight = int64(max(known, 1))
		}
	}
}

// fill gives seats to one party after the other: first to parties that have seats, and then in descending order of the
// limits. This uses as few parties as possible, and the order does not depend on the number of seats. It returns the
// number of seats that did not fit.
func fill(parties []party, n int64) (left int64) {
	q := queueOf(parties, func(a, b *party) int {
		if a.holds() != b.holds() {
			return cmp.Compare(b.holds(), a.holds())
		}
		return cmp.Or(cmp.Compare(b.limit, a.limit), cmp.Compare(b.current, a.current))
	})
	for ; n > 0 && !q.empty(); q.restoreHeap() {
		p := q.first()
		given := min(int64(p.limit-p.seats), n)
		p.seats += int32(given)
		n -= given
	}
	return n
}

// at returns the element i of an order. A nil order is the identity.
func at(order []int32, i int) int {
	if order == nil {
		return i
	}
	return int(order[i])
}
