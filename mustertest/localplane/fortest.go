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

// startDeadline limits the start of a plane for a test. It does not include the build of the binaries and the wait for
// other starts. A plane starts in three seconds on two idle cores; the rest is for tests of other packages that start
// at the same time.
const startDeadline = 2 * time.Minute

// starting limits the number of planes of a package that start at the same time. A start keeps a core busy. Many
// concurrent starts end no earlier than sequential ones, and each of them takes so long that its components time out.
var starting = make(chan struct{}, max(2, runtime.NumCPU()))

// ForTest starts a plane for one test and stops it when the test and its subtests have ended. It skips the test under
// -short. It fails the test if the plane does not start, or if one of its components ends by itself.
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

// ForTest returns the shared plane. It skips the test under -short, and fails each test that calls it if the plane does
// not start.
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
	// parallelTests is the number of parallel tests of a package that run at the same time. Tests on planes mostly wait
	// for the planes, so they do not need one core each.
	parallelTests = 8

	// pooledTests is the same number for a package with a Pool, where the size of the pool limits the tests. If tests that
	// wait for a plane could use up this number, the subtests of tests that have a plane would not run, and no plane would
	// become free.
	pooledTests = 1000
)

// Run runs the tests, stops the shared planes and returns the exit code. Call it from TestMain. Without -parallel,
// eight parallel tests run at the same time instead of one per core. In a package with a Pool, their number is not
// limited.
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

// allowParallel sets -parallel to limit, unless the flag is set or the machine has at least limit cores.
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

// startForTest starts a plane within startDeadline. The deadline does not include the build of the binaries and the
// wait for other starts. The build ends shortly before the -timeout of the test binary, with an error that names the
// remedy.
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

// timeoutMargin is the time between the end of a build and the -timeout of a test binary, in which tests clean up.
const timeoutMargin = 20 * time.Second

// beforeTimeout returns a context that ends timeoutMargin before the -timeout of the test binary. If the test has no
// deadline, the context does not end.
func beforeTimeout(t testing.TB) (context.Context, context.CancelFunc) {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok { // For example a benchmark.
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
