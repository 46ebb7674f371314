package localplane

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeTest is a testing.TB with a name that records the calls of Parallel.
type fakeTest struct {
	testing.TB
	name     string
	parallel int
	cleanup  []func()
	done     context.Context
}

func (t *fakeTest) Name() string             { return t.name }
func (t *fakeTest) Helper()                  {}
func (t *fakeTest) Parallel()                { t.parallel++ }
func (t *fakeTest) Cleanup(f func())         { t.cleanup = append(t.cleanup, f) }
func (t *fakeTest) Context() context.Context { return t.done }
func (t *fakeTest) end() {
	for _, f := range t.cleanup {
		f()
	}
}

func TestPool_OnePlanePerTest(t *testing.T) {
	skipIfShort(t)
	p := NewPool(2, Options{Name: "pool"})
	plane := make([]*Plane, len(p.Shared()))
	for i, shared := range p.Shared() {
		plane[i] = &Plane{}
		shared.once.Do(func() { shared.plane = plane[i] }) // as if the plane had started
	}
	a, b := &fakeTest{name: "TestA", done: t.Context()}, &fakeTest{name: "TestAB", done: t.Context()}
	require.Same(t, plane[0], p.ForTest(a))
	require.Same(t, plane[1], p.ForTest(b), "another test has another plane")
	require.Same(t, plane[0], p.ForTest(a), "the second call returns the same plane")
	require.Equal(t, 1, a.parallel)
	part := &fakeTest{name: "TestA/part", done: t.Context()}
	require.Same(t, plane[0], p.ForTest(part), "a subtest has the plane of its test")
	require.Zero(t, part.parallel)
	part.end()

	c, borrowed := &fakeTest{name: "TestC", done: t.Context()}, make(chan *Plane)
	var ended atomic.Bool
	go func() {
		got := p.Borrow(c)
		if !ended.Load() {
			t.Error("Borrow returned a plane that another test uses")
		}
		borrowed <- got
	}()
	ended.Store(true)
	b.end()
	require.Same(t, plane[1], <-borrowed)
	require.Zero(t, c.parallel)
	require.Equal(t, "pool-1", p.Shared()[1].Options.Name)
}
