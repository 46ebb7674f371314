package replicas

import "cmp"

// Divide decides how many replicas each cluster gets. It is pure, and may be called concurrently. Equal requests have
// equal results, in any order of their clusters.
//
// For an invalid Request it returns a [*field.Error] with the invalid field, such as "clusters[2].weight: Invalid
// value: -1: must not be negative", and no Result. Keep the previous division then: an empty Result would remove the
// workload.
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
		weigh(parties, change)
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

// party is a cluster in a division. What there is to divide are seats, as in a parliament, from where the method comes.
type party struct {
	weight  int64  // its claim; with 0 it gets nothing more
	rank    uint64 // who is first when all else is equal: the lower, and then the first by name
	current int32  // the seats that it held so far
	seats   int32  // those that it has now
	limit   int32  // and may have
}

// enter lists the clusters by name, without any seat.
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

// change is what is left to divide after the clusters have kept what they hold.
type change struct {
	more int64 // seats to give out
	// shrinks says that they hold too much: all seats are given out anew, to none more than it held.
	shrinks bool
}

// keep lets the clusters have what they hold, unless all is to be divided anew.
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

// existing is what the party may keep of what it has.
func (p *party) existing() int32 { return min(p.current, p.limit) }

// weigh makes the limits the weights. An unbounded cluster, which has no number, counts as much as the roomiest
// that has one: more would be a guess, and would send everything to the one cluster about which nothing is known.
func weigh(parties []party, c change) {
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

// fill gives out seats to one cluster after the other: those that have some come first, then those that may have most.
// That is as few clusters as possible, and the order does not depend on how many seats there are. It
// returns how many it could not give out.
func fill(parties []party, n int64) (left int64) {
	q := queueOf(parties, func(a, b *party) int {
		if a.holds() != b.holds() {
			return cmp.Compare(b.holds(), a.holds())
		}
		return cmp.Or(cmp.Compare(b.limit, a.limit), cmp.Compare(b.current, a.current))
	})
	for ; n > 0 && !q.empty(); q.fix() {
		p := q.first()
		given := min(int64(p.limit-p.seats), n)
		p.seats += int32(given)
		n -= given
	}
	return n
}

// at is the i-th of an order; nil is the order as it is.
func at(order []int32, i int) int {
	if order == nil {
		return i
	}
	return int(order[i])
}
