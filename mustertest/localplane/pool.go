package localplane

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A Pool is a set of planes that the tests of a package use in parallel. Each test has one plane for itself. Tests of
// controllers mostly wait, so two or three concurrent tests use a machine better than one. Each plane starts when a
// test first needs it. A test with many parallel subtests must limit how many of them run at the same time.
//
//	var planes = localplane.NewPool(3, localplane.Options{Name: "hub"})
//
//	func TestMain(m *testing.M) { os.Exit(localplane.Run(m, planes.Shared()...)) }
//
//	func TestJoin(t *testing.T) { cfg := planes.ForTest(t).Config() ... }
type Pool struct {
	shared []*Shared
	free   chan *Shared

	mu    sync.Mutex
	users map[string]*Shared // by the name of the test
}

// NewPool returns a pool of size planes. Their names end with numbers.
func NewPool(size int, opts Options) *Pool {
	p := &Pool{free: make(chan *Shared, size), users: map[string]*Shared{}}
	name := opts.withDefaults().Name
	for i := range size {
		opts.Name = fmt.Sprintf("%s-%d", name, i)
		shared := &Shared{Options: opts, pooled: true}
		p.shared = append(p.shared, shared)
		p.free <- shared
	}
	return p
}

// Shared returns the planes of the pool, for Run.
func (p *Pool) Shared() []*Shared { return p.shared }

// ForTest returns a plane that only the test and its subtests use until the test ends. The first call makes a test
// parallel, and waits until a plane is free. Objects of earlier tests remain on the plane. ForTest skips the test under
// -short, and fails it if the plane does not start.
func (p *Pool) ForTest(t testing.TB) *Plane {
	t.Helper()
	skipIfShort(t)
	if shared := p.inUse(t.Name()); shared != nil {
		return shared.ForTest(t)
	}
	if parallel, ok := t.(interface{ Parallel() }); ok {
		parallel.Parallel()
	}
	return p.Borrow(t)
}

// Borrow does the same as ForTest, but does not make the test parallel. Use it for tests that are already parallel or
// must not be parallel.
func (p *Pool) Borrow(t testing.TB) *Plane {
	t.Helper()
	skipIfShort(t)
	if shared := p.inUse(t.Name()); shared != nil {
		return shared.ForTest(t)
	}
	var shared *Shared
	select {
	case shared = <-p.free:
	case <-t.Context().Done():
		t.Fatal("no plane of the pool became free before the test was over")
	}
	p.mu.Lock()
	p.users[t.Name()] = shared
	p.mu.Unlock()
	t.Cleanup(func() {
		p.mu.Lock()
		delete(p.users, t.Name())
		p.mu.Unlock()
		p.free <- shared
	})
	return shared.ForTest(t)
}

// inUse returns the plane that the test or one of its parents already uses, or nil.
func (p *Pool) inUse(name string) *Shared {
	p.mu.Lock()
	defer p.mu.Unlock()
	for user, shared := range p.users {
		if name == user || strings.HasPrefix(name, user+"/") {
			return shared
		}
	}
	return nil
}
