package fleet

import (
	"context"
	"sync"
)

// goroutines contains the goroutines of the members of a fleet, and of their runners. A member without a connection
// that needs no connection has no goroutine.
type goroutines struct {
	newMember func(name string) *member
	started   sync.WaitGroup

	mu      sync.Mutex
	life    context.Context    // of the goroutines of members; nil: not started, or ended
	members map[string]*member // the members with a goroutine
	waiting map[string]*observed
	running map[string]chan struct{} // by member and runner: closed when that has returned
}

func newGoroutines(newMember func(name string) *member) *goroutines {
	return &goroutines{
		newMember: newMember, members: map[string]*member{}, waiting: map[string]*observed{},
		running: map[string]chan struct{}{},
	}
}

// begin starts the goroutines of all members that were observed before.
func (g *goroutines) begin(ctx context.Context) {
	g.mu.Lock()
	g.life = ctx
	waiting := g.waiting
	g.waiting = map[string]*observed{}
	g.mu.Unlock()
	for name, o := range waiting {
		g.notify(name, o)
	}
}

// end starts no more goroutines of members, and returns a channel that is closed when all of them have returned.
func (g *goroutines) end() <-chan struct{} {
	g.mu.Lock()
	g.life = nil
	g.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		g.started.Wait()
		close(ended)
	}()
	return ended
}

// wake wakes the goroutines of all members.
func (g *goroutines) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		m.inbox.wake()
	}
}

// notify passes an observation to the goroutine of a member; nil: the member is deleted. It does not block.
func (g *goroutines) notify(name string, o *observed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.life == nil {
		g.waiting[name] = o
		return
	}
	m := g.members[name]
	if m == nil {
		if o == nil || !concerns(o) {
			return
		}
		m = g.newMember(name)
		g.members[name] = m
		ctx := g.life
		g.started.Go(func() { m.run(ctx) })
	}
	m.inbox.notify(o)
}

// leave ends the goroutine of a member, unless there is a new observation for it.
func (g *goroutines) leave(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := m.inbox.latest(); o != nil && concerns(o) {
		return false
	}
	delete(g.members, m.name)
	return true
}

// seenSecret returns the last observed content of a member's Secret.
func (g *goroutines) seenSecret(name string) (secretSeen, bool) {
	g.mu.Lock()
	m, waiting := g.members[name], g.waiting[name]
	g.mu.Unlock()
	if m != nil {
		waiting = m.inbox.latest()
	}
	if waiting == nil {
		return secretSeen{}, false
	}
	return waiting.secret, true
}

// start calls a function in a goroutine. An earlier call for the same key must return first.
func (g *goroutines) start(key string, call func()) {
	returned := make(chan struct{})
	g.mu.Lock()
	before := g.running[key]
	g.running[key] = returned
	g.mu.Unlock()
	g.started.Go(func() {
		defer func() {
			g.mu.Lock()
			if g.running[key] == returned {
				delete(g.running, key)
			}
			g.mu.Unlock()
			close(returned)
		}()
		if before != nil {
			<-before
		}
		call()
	})
}
