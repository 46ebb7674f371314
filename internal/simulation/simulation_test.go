package simulation

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed of TestSimulation")
	seedCount = flag.Int("seeds", 0, "how many seeds TestSimulation runs; 0: as many as MUSTER_SIMULATION has time for")
	verbose   = flag.Bool("history", false, "print the history of each seed")
)

// stuck is the real time that one seed may take.
const stuck = 2 * time.Minute

// bounds of a simulation, in virtual time.
const (
	rounds      = 2                // of faults, each followed by convergence and quiet
	steps       = 12               // of users or disasters in a round
	convergence = 30 * time.Minute // in which all requests are carried out once the faults stop
	settling    = 15 * time.Minute // until the system is quiet
	quiet       = 10 * time.Minute // in which there are only writes of Leases
)

// result is what a simulation found.
type result struct {
	problems []string
	history  *history
}

// simulate runs one seed. The oracles are:
//
//   - No object is deleted on a member without an earlier request by a user.
//   - Once the faults stop, every request is carried out within bounded time.
//   - Then the system is quiet: only Leases are written.
//   - Each object on a member has one owner.
//   - No process exceeds the shipped roles.
func simulate(t *testing.T, seed uint64, planted mutant) (out result) {
	h := &history{writes: map[string]int{}}
	// Virtual time stands still while a goroutine runs, or waits for a mutex. This timer uses real time.
	watchdog := time.AfterFunc(stuck, func() {
		text, stacks := h.text(), make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)] // the mutex is among them
		panic(fmt.Sprintf("seed %d takes longer than %s of real time\n%s\n%s", seed, stuck, text[max(0, len(text)-40_000):], stacks))
	})
	defer watchdog.Stop()
	out.history = h
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, h, seed, 2+int(seed%2), planted)
		defer w.close()
		for _, m := range w.members {
			w.until(m.name+" joins", 10*time.Minute, func() error { return w.joined(m.name) })
		}
		w.intent.change(func() {
			for _, m := range w.members {
				w.intent.in[m.name], w.intent.accepted[m.name] = true, true
			}
		})
		w.userChangesPlacement()
		w.userChangesWorkSet()
		for range rounds {
			if w.round(); len(w.h.problems()) > 0 {
				break
			}
		}
		out.problems = w.h.problems()
	})
	return out
}

func (w *world) round() {
	w.net.chaotic.Store(true)
	for range steps {
		if w.random.IntN(3) > 0 {
			w.act()
		} else {
			w.strike()
		}
		w.wait(time.Duration(w.random.IntN(90)) * time.Second)
	}
	w.calm()
	if !w.until("requests are carried out", convergence, func() error { w.reapply(); return w.converged() }) {
		w.describe()
		return
	}
	w.h.note("converged")
	w.intent.settled()
	w.wait(settling)
	w.h.countWrites()
	w.wait(quiet)
	writes := w.h.countWrites()
	maps.DeleteFunc(writes, func(request string, _ int) bool { return strings.Contains(request, " leases ") })
	for _, request := range slices.Sorted(maps.Keys(writes)) {
		w.h.violated("not quiet: %s: %d times in %s", request, writes[request], quiet)
	}
	if err := w.converged(); err != nil {
		w.h.violated("what was carried out changed again: %v", err)
		w.describe()
	}
}

// describe notes the status of the WorkSets and Placements, to explain a violation.
func (w *world) describe() {
	var sets placementv1alpha1.WorkSetList
	var placements placementv1alpha1.PlacementList
	if err := errors.Join(w.admin.List(w.ctx, &sets), w.admin.List(w.ctx, &placements)); err != nil {
		w.h.note("describe: %v", err)
	}
	for i := range sets.Items {
		w.h.note("status of WorkSet %s: %s", sets.Items[i].Name, toJSON(sets.Items[i].Status))
	}
	for i := range placements.Items {
		w.h.note("status of Placement %s: %s", placements.Items[i].Name, toJSON(placements.Items[i].Status))
	}
}

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// converged returns nil if each member and each object is as users want it.
func (w *world) converged() error {
	for _, m := range w.members {
		if w.intent.in[m.name] {
			if err := w.joined(m.name); err != nil {
				return err
			}
			continue
		}
		var list membershipv1alpha1.MemberClusterList
		if err := w.admin.List(w.ctx, &list); err != nil {
			return err
		}
		for _, cluster := range list.Items {
			if cluster.Name == m.name && cluster.Status.Phase != membershipv1alpha1.PhaseLeft {
				return fmt.Errorf("MemberCluster %s is %s instead of Left", m.name, cluster.Status.Phase)
			}
		}
	}
	return w.intent.missing()
}

// TestSimulation runs -seeds, or seeds for the time that MUSTER_SIMULATION has.
func TestSimulation(t *testing.T) {
	count, began := *seedCount, time.Now()
	var limit time.Duration
	if text := os.Getenv("MUSTER_SIMULATION"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatalf("MUSTER_SIMULATION: %v", err)
		}
	}
	if count == 0 && limit == 0 {
		t.Skip("a seed takes several seconds: set -seeds or MUSTER_SIMULATION")
	}
	done := 0
	for seed := *firstSeed; count > 0 && done < count || limit > 0 && time.Since(began) < limit; seed++ {
		r := simulate(t, seed, mutant{})
		done++
		if len(r.problems) > 0 {
			t.Errorf("seed %d: %s\nreplay: go test ./internal/simulation -run TestSimulation -seed %d -seeds 1\n%s", seed,
				strings.Join(r.problems, "\n"), seed, r.history.text())
		} else if *verbose {
			t.Logf("seed %d: history %s\n%s", seed, r.history.hash(), r.history.text())
		}
	}
	took := time.Since(began)
	t.Logf("%d seeds in %s: %.0f histories per hour", done, took.Round(time.Millisecond), float64(done)/took.Hours())
}
