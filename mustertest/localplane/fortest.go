package localplane

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// startDeadline bounds the start of a plane for a test, once its binaries are there and it is its turn. A plane takes
// three seconds alone on two cores; the rest is for the tests of all other packages that start at the same time.
const startDeadline = 2 * time.Minute

// starting limits how many planes of a package start at a time. A start keeps a core busy: many at a time end no
// earlier than one after the other, and each of them takes so long that its components give up.
var starting = make(chan struct{}, max(2, runtime.NumCPU()))

// ForTest starts a plane for one test and stops it when the test and its subtests are over. It skips the test
// under -short and fails it if the plane does not start, or if one of its components ended by itself.
func ForTest(t testing.TB, opts Options) *Plane {
	t.Helper()
	skipIfShort(t)
	p, err := startForTest(t, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Shared is a plane that the tests of a package share. It starts when the first test requests it:
//
//	var hub = localplane.Shared{Options: localplane.Options{Name: "hub"}}
//
//	func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &hub)) }
//
//	func TestJoin(t *testing.T) { cfg := hub.ForTest(t).Config() ... }
type Shared struct {
	Options Options

	once   sync.Once
	plane  *Plane
	err    error
	pooled bool
}

// ForTest returns the shared plane. It skips the test under -short, and fails every test if the plane does not start.
func (s *Shared) ForTest(t testing.TB) *Plane {
	t.Helper()
	skipIfShort(t)
	s.once.Do(func() { s.plane, s.err = startForTest(t, s.Options) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.plane
}

const (
	// parallelTests is how many parallel tests of a package run at a time. Tests on planes wait for the planes most of
	// the time, and need no core of their own.
	parallelTests = 8

	// pooledTests is the same for a package with a Pool, whose size is the limit. If tests that wait for a plane could
	// use up this number, the subtests of those that have a plane would not run, and no plane would become free.
	pooledTests = 1000
)

// Run runs the tests, stops the shared planes and returns the code to exit with. It is for TestMain. Without -parallel,
// eight parallel tests run at a time instead of one per core, and any number in a package with a Pool.
func Run(m *testing.M, shared ...*Shared) int {
	limit := parallelTests
	for _, s := range shared {
		if s.pooled {
			limit = pooledTests
		}
	}
	if err := allowParallel(limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, s := range shared {
		if s.plane == nil {
			continue
		}
		if err := s.plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// allowParallel sets -parallel, unless the flag is given or the machine has more cores.
func allowParallel(limit int) error {
	if !flag.Parsed() {
		flag.Parse()
	}
	given := runtime.GOMAXPROCS(0) >= limit
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(limit))
}

func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a local control plane, which -short leaves out")
	}
}

// startForTest gives the start a deadline. The build of the binaries and the wait for other starts do not count against
// it, but the build ends with an error that explains what to do before "go test" ends this test binary.
func startForTest(t testing.TB, opts Options) (*Plane, error) {
	build, ended := beforeTimeout(t)
	defer ended()
	if _, err := Binaries(build, opts); err != nil {
		return nil, err
	}
	select {
	case starting <- struct{}{}:
		defer func() { <-starting }()
	case <-build.Done():
		return nil, fmt.Errorf("wait for other planes to start: %w", context.Cause(build))
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	return Start(ctx, opts)
}

// timeoutMargin is the time in which a build ends, and tests clean up, before the -timeout of a test binary.
const timeoutMargin = 20 * time.Second

// beforeTimeout returns a context that ends timeoutMargin before the -timeout of the test binary, if that is known.
func beforeTimeout(t testing.TB) (context.Context, context.CancelFunc) {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok { // Such as a benchmark.
		return context.Background(), func() {}
	}
	deadline, ok := limited.Deadline()
	if !ok {
		return context.Background(), func() {}
	}
	return context.WithDeadlineCause(context.Background(), deadline.Add(-timeoutMargin), fmt.Errorf("%w at %s: %s",
		errTimeout, deadline.Format(time.TimeOnly), "run go test with -timeout=40m; it continues the build"))
}

var errTimeout = errors.New("the time limit of this test binary (go test -timeout, 10 minutes by default) ends")
