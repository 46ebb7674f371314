package queue

import "cmp"

// parked contains the unschedulable keys, by the plugins that rejected them.
type parked[K cmp.Ordered] struct {
	lists  map[string]*list[K]
	ticket uint64 // the latest ticket
	count  int
}

// add assigns the next ticket to an entry and adds the entry to the lists of the plugins that rejected it.
func (p *parked[K]) add(e *entry[K], rejectedBy []string) {
	p.ticket++
	e.ticket, e.rejectedBy = p.ticket, rejectedBy
	for _, plugin := range rejectedBy {
		l := p.lists[plugin]
		if l == nil {
			l = &list[K]{}
			p.lists[plugin] = l
		}
		l.add(e)
	}
	p.count++
}

// remove removes an entry from all lists.
func (p *parked[K]) remove(e *entry[K]) {
	for _, plugin := range e.rejectedBy {
		l := p.lists[plugin]
		l.remove(e)
		if len(l.places) == 0 {
			delete(p.lists, plugin)
		}
	}
	e.ticket, e.rejectedBy = 0, nil
	p.count--
}
