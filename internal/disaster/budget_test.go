package disaster

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// budget limits the planes that tests use at a time. Each idle plane uses two percent of a core, and the tests
// mostly wait. More planes would slow each other down, and with fewer planes the tests would take longer.
var budget = planeBudget{free: planeCount{hubs: 5, members: 8}}

// planeCount is the number of planes that a test uses at a time.
type planeCount struct{ hubs, members int }

// planeBudget lets tests run while their planes are within the limit. The longest waiting test starts first.
type planeBudget struct {
	mu      sync.Mutex
	free    planeCount
	opens   sync.Once
	open    bool
	waiting []*waitingTest
}

// waitingTest is a test that waits for planes.
type waitingTest struct {
	planeCount
	seconds int
	granted chan struct{}
}

// inParallel makes a test parallel, and waits until the planes that it needs are free. seconds is the approximate
// duration of the test, and determines the order only.
func inParallel(t *testing.T, planes planeCount, seconds int) {
	t.Helper()
	if os.Getenv(lengthVariable) == "" && os.Getenv(upgradeVariable) == "" {
		t.Skipf("the test needs several control planes for minutes; set %s=scaled, or run .ci/run disaster", lengthVariable)
	}
	t.Parallel()
	hubPlanes.expect(planes.hubs)
	memberPlanes.expect(planes.members)
	each := &waitingTest{planes, seconds, make(chan struct{})}
	budget.mu.Lock()
	budget.waiting = append(budget.waiting, each)
	slices.SortStableFunc(budget.waiting, func(a, b *waitingTest) int { return cmp.Compare(b.seconds, a.seconds) })
	budget.grant()
	budget.mu.Unlock()
	// No test begins before all tests wait. Otherwise their order would be random.
	budget.opens.Do(func() {
		time.AfterFunc(200*time.Millisecond, func() {
			budget.mu.Lock()
			defer budget.mu.Unlock()
			budget.open = true
			budget.grant()
		})
	})
	<-each.granted
	t.Cleanup(func() {
		budget.mu.Lock()
		defer budget.mu.Unlock()
		budget.free.hubs += planes.hubs
		budget.free.members += planes.members
		budget.grant()
		require.NoError(t, errors.Join(hubPlanes.trim(), memberPlanes.trim()), "stop the planes that no test will use")
	})
}

// grant lets all tests run whose planes are free. The caller has locked the budget.
func (b *planeBudget) grant() {
	b.waiting = slices.DeleteFunc(b.waiting, func(each *waitingTest) bool {
		fits := b.open && each.hubs <= b.free.hubs && each.members <= b.free.members
		if fits {
			b.free.hubs -= each.hubs
			b.free.members -= each.members
			close(each.granted)
		}
		return fits
	})
}
