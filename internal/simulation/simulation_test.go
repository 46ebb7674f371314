package simulation

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed of TestSimulation")
	seedCount = flag.Int("seeds", 0, "the number of seeds; 0: as many as fit in the time of MUSTER_SIMULATION")
	verbose   = flag.Bool("history", false, "print the history of each seed")
)

// seedTimeout is the maximum real time of one seed.
const seedTimeout = 5 * time.Minute

// bounds of a simulation, in virtual time.
const (
	rounds      = 2                // of faults, each followed by convergence and quiet
	steps       = 12               // of users or disasters in a round
	convergence = 30 * time.Minute // in which all requests are carried out once the faults stop
	settling    = 15 * time.Minute // until the system is quiet
	quiet       = 10 * time.Minute // in which there are only writes of Leases
)

// result is the result of a simulation.
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
//   - No credential outlives its member.
//   - The number of objects that the hub and the agents keep is bounded.
//   - No process exceeds the shipped roles.
func simulate(t *testing.T, seed uint64, planted mutant) (out result) {
	h := &history{writes: map[string]int{}}
	// Virtual time stands still while a goroutine runs, or waits for a mutex. This timer uses real time.
	watchdog := time.AfterFunc(seedTimeout, func() {
		text, stacks := h.text(), make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)] // The stacks show the owner of the mutex.
		panic(fmt.Sprintf("seed %d takes longer than %s of real time\n%s\n%s", seed, seedTimeout,
			text[max(0, len(text)-40_000):], stacks))
	})
	defer watchdog.Stop()
	out.history = h
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, h, seed, 2+int(seed%2), planted)
		defer w.close()
		for _, m := range w.members {
			w.until(m.name+" joins", 10*time.Minute, func() error { return w.joined(m.name) })
		}
		w.intent.change(func() {
			for _, m := range w.members {
				w.intent.inFleet[m.name], w.intent.accepted[m.name] = true, true
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

// inBubble is synctest.Test, except that goroutines of controller-runtime and client-go may remain: their caches leave
// goroutines behind when they end before they are synced, or during an event. Goroutines of muster must end.
func inBubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	bubble := ""
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		stacks := make([]byte, 64<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		remain := strings.Contains(fmt.Sprint(reason), "blocked goroutines remain")
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			header, _, _ := strings.Cut(stack, "\n")
			if !strings.Contains(header, bubble+"]") {
				continue
			}
			_, creator, _ := strings.Cut(stack, "\ncreated by ")
			ours := strings.Contains(stack, "github.com/muster-sdk/muster/")
			remain = remain && !ours && (strings.HasPrefix(creator, "sigs.k8s.io/") || strings.HasPrefix(creator, "k8s.io/"))
		}
		if bubble == "" || !remain {
			panic(fmt.Sprintf("%v\n%s", reason, stacks))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		header := make([]byte, 200)
		header = header[:runtime.Stack(header, false)]
		bubble = regexp.MustCompile(`synctest bubble \d+`).FindString(string(header))
		f(t)
	})
}

func (w *world) round() {
	w.net.chaotic.Store(true)
	for range steps {
		if w.random.IntN(3) > 0 {
			w.randomUserAction()
		} else {
			w.randomDisaster()
		}
		w.wait(time.Duration(w.random.IntN(90)) * time.Second)
	}
	w.endFaults()
	if !w.until("requests are carried out", convergence, func() error { w.createMissing(); return w.converged() }) {
		w.describe()
		return
	}
	w.h.note("converged")
	w.intent.finished()
	w.checkCredentials()
	w.wait(settling + w.skew) // until the recorded times of clocks that were ahead
	w.skew = 0
	w.h.takeWrites()
	w.wait(quiet)
	writes := w.h.takeWrites()
	maps.DeleteFunc(writes, func(request string, _ int) bool { return strings.Contains(request, " leases ") })
	for _, request := range slices.Sorted(maps.Keys(writes)) {
		w.h.violated("not quiet: %s: %d times in %s", request, writes[request], quiet)
	}
	w.checkBounds()
	if err := w.converged(); err != nil {
		w.h.violated("the converged state changed again: %v", err)
		w.describe()
	}
}

// checkCredentials is the oracle of credentials: the hub refuses the last credential of a member that has left.
func (w *world) checkCredentials() {
	for _, m := range w.members {
		w.net.mu.Lock()
		header := w.net.credentials["agent-"+m.name]
		w.net.mu.Unlock()
		token, ok := strings.CutPrefix(header, "Bearer ")
		if w.intent.inFleet[m.name] || !ok {
			continue
		}
		cfg := &rest.Config{Host: w.hub.URL(), Dial: w.hub.DialContext, BearerToken: token}
		cfg.CAData = w.hub.CertificateAuthority()
		c, err := client.New(cfg, client.Options{Scheme: w.scheme, Mapper: w.admin.RESTMapper()})
		if err != nil {
			w.h.violated("a client with the credential of %s: %v", m.name, err)
			continue
		}
		err = c.List(w.ctx, &workv1alpha1.WorkList{}, client.InNamespace("member-"+m.name))
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			w.h.violated("%s has left, and its credential is accepted: %v", m.name, err)
		}
	}
}

// checkBounds is the oracle of memory: a quiet system keeps a bounded number of objects.
func (w *world) checkBounds() {
	members, sets := len(w.members), len(workSetNames)
	for _, bound := range []struct {
		list client.ObjectList
		in   string
		most int
	}{
		{&membershipv1alpha1.JoinRequestList{}, membership.RegistrationNamespace, 3 * members},
		{&corev1.ConfigMapList{}, membership.RegistrationNamespace, 20 * members}, // records of leaves
		{&workv1alpha1.WorkList{}, "", members * (sets + 1)},
		{&placementv1alpha1.PlacementDecisionList{}, "", len(placementNames)},
		{&appsv1.ControllerRevisionList{}, "", 11 * sets},
	} {
		if err := w.admin.List(w.ctx, bound.list, client.InNamespace(bound.in)); err != nil {
			w.h.violated("list %T: %v", bound.list, err)
		} else if n := meta.LenList(bound.list); n > bound.most {
			w.h.violated("the hub keeps %d objects of %T, want at most %d", n, bound.list, bound.most)
		}
	}
	for _, m := range w.members {
		var applied workv1alpha1.AppliedWorkList
		if err := m.admin.List(w.ctx, &applied); err != nil || len(applied.Items) > sets+1 {
			w.h.violated("%s keeps %d AppliedWorks: %v", m.name, len(applied.Items), err)
		}
	}
}

// describe notes the status of the WorkSets and Placements, to explain a violation.
func (w *world) describe() {
	var sets placementv1alpha1.WorkSetList
	var placements placementv1alpha1.PlacementList
	var clusterSets placementv1alpha1.ClusterWorkSetList
	var clusterPlacements placementv1alpha1.ClusterPlacementList
	if err := errors.Join(w.admin.List(w.ctx, &sets), w.admin.List(w.ctx, &placements),
		w.admin.List(w.ctx, &clusterSets), w.admin.List(w.ctx, &clusterPlacements)); err != nil {
		w.h.note("describe: %v", err)
	}
	for i := range clusterSets.Items {
		w.h.note("status of ClusterWorkSet %s: %s", clusterSets.Items[i].Name, toJSON(clusterSets.Items[i].Status))
	}
	for i := range clusterPlacements.Items {
		w.h.note("status of ClusterPlacement %s: %s", clusterPlacements.Items[i].Name,
			toJSON(clusterPlacements.Items[i].Status))
	}
	var memberships membershipv1alpha1.MembershipList
	var works workv1alpha1.WorkList
	if err := errors.Join(w.admin.List(w.ctx, &memberships), w.admin.List(w.ctx, &works)); err != nil {
		w.h.note("describe: %v", err)
	}
	for i := range memberships.Items {
		m := &memberships.Items[i]
		w.h.note("Membership in %s: hub %s, required epoch %d", m.Namespace, toJSON(m.Spec.Hub), m.Status.RequiredHubEpoch)
	}
	for i := range works.Items {
		work := &works.Items[i]
		w.h.note("Work %s/%s: deleted at %v, conditions %s", work.Namespace, work.Name, work.DeletionTimestamp,
			toJSON(work.Status.Conditions))
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

// converged returns nil if each member and each object has the state that users want.
func (w *world) converged() error {
	for _, m := range w.members {
		if w.intent.inFleet[m.name] {
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
				return fmt.Errorf("MemberCluster %s is %s, want Left", m.name, cluster.Status.Phase)
			}
		}
	}
	return errors.Join(w.intent.missing(), w.pendingWorks())
}

// pendingWorks returns an error for each Work that is being deleted, or that keeps objects that its spec does not
// contain anymore.
func (w *world) pendingWorks() error {
	var works workv1alpha1.WorkList
	if err := w.admin.List(w.ctx, &works); err != nil {
		return err
	}
	var problems []error
	for i := range works.Items {
		work := &works.Items[i]
		if work.DeletionTimestamp != nil {
			problems = append(problems, fmt.Errorf("Work %s/%s is being deleted", work.Namespace, work.Name))
		}
		for _, condition := range work.Status.Conditions {
			if strings.Contains(condition.Message, "nothing is deleted on the member") {
				problems = append(problems, fmt.Errorf("Work %s/%s: %s", work.Namespace, work.Name, condition.Message))
				break
			}
		}
	}
	return errors.Join(problems...)
}

// TestSimulation runs -seeds, or seeds for the time of MUSTER_SIMULATION.
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
	var next, done atomic.Int64
	t.Cleanup(func() {
		n, took := done.Load(), time.Since(began)
		t.Logf("%d seeds in %s: %.0f histories per hour", n, took.Round(time.Millisecond), float64(n)/took.Hours())
	})
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			for {
				n := next.Add(1) - 1
				if count > 0 && n >= int64(count) || limit > 0 && time.Since(began) >= limit {
					return
				}
				seed := *firstSeed + uint64(n)
				r := simulate(t, seed, mutant{})
				done.Add(1)
				if len(r.problems) > 0 {
					const replay = "go test ./internal/simulation -run TestSimulation -seeds 1 -seed"
					problems := strings.Join(r.problems, "\n")
					t.Errorf("seed %d: %s\nreplay: %s %d\n%s", seed, problems, replay, seed, r.history.text())
				} else if *verbose {
					t.Logf("seed %d: history %s\n%s", seed, r.history.hash(), r.history.text())
				}
			}
		})
	}
}
