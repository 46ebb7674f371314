package localplane

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// pooled is a testing.TB with a name that records whether it was made parallel.
type pooled struct {
	testing.TB
	name     string
	parallel int
	cleanup  []func()
	done     context.Context
}

func (t *pooled) Name() string             { return t.name }
func (t *pooled) Helper()                  {}
func (t *pooled) Parallel()                { t.parallel++ }
func (t *pooled) Cleanup(f func())         { t.cleanup = append(t.cleanup, f) }
func (t *pooled) Context() context.Context { return t.done }
func (t *pooled) end() {
	for _, f := range t.cleanup {
		f()
	}
}

func TestPool(t *testing.T) {
	skipIfShort(t)
	p := NewPool(2, Options{Name: "pool"})
	plane := make([]*Plane, len(p.Shared()))
	for i, shared := range p.Shared() {
		plane[i] = &Plane{}
		shared.once.Do(func() { shared.plane = plane[i] }) // as if it had started
	}
	a, b := &pooled{name: "TestA", done: t.Context()}, &pooled{name: "TestAB", done: t.Context()}
	require.Same(t, plane[0], p.ForTest(a))
	require.Same(t, plane[1], p.ForTest(b), "a plane of its own")
	require.Same(t, plane[0], p.ForTest(a), "the same at the second call")
	require.Equal(t, 1, a.parallel)
	part := &pooled{name: "TestA/part", done: t.Context()}
	require.Same(t, plane[0], p.ForTest(part), "that of the whole test")
	require.Zero(t, part.parallel)
	part.end()

	c, had := &pooled{name: "TestC", done: t.Context()}, make(chan *Plane)
	var ended atomic.Bool
	go func() {
		got := p.Borrow(c)
		if !ended.Load() {
			t.Error("got a plane that another test has")
		}
		had <- got
	}()
	ended.Store(true)
	b.end()
	require.Same(t, plane[1], <-had)
	require.Zero(t, c.parallel)
	require.Equal(t, "pool-1", p.Shared()[1].Options.Name)
}
