package addon_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// versioned is an add-on in Go with a version.
type versioned struct{ name, version string }

func (v versioned) Name() string    { return v.name }
func (v versioned) Version() string { return v.version }

func (v versioned) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: v.name},
		Data:       map[string]string{"version": v.version, "color": in.Settings.Variables["COLOR"]},
	}}, nil
}

// fleet is an add-on on many members.
type fleet struct {
	*hub
	*running
	*slotObserver
	members *simulatedAgents
	names   []string
	version string
	began   time.Time
}

// fleetSize is the number of members in TestFleet: 100 in the step models of .ci/run.
var fleetSize = func() int {
	if testkit.Exhaustive() {
		return 100
	}
	return 40
}()

// maxFailures is the number of members that may fail.
const maxFailures = 2

func newFleet(t *testing.T, size int, rollout placementv1alpha1.RolloutStrategy) *fleet {
	h := newHub(t)
	f := &fleet{hub: h, version: "v1", slotObserver: h.observe("fleet", size/10)}
	for i := range size {
		f.names = append(f.names, fmt.Sprintf("m%03d", i))
	}
	h.members(f.names...)
	h.choose("all", f.names...)
	f.members = h.runAgents()
	h.color("colors", "blue")
	f.begin()
	h.addon("fleet", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Configs = []v1alpha1.ConfigKind{addonConfigs}
		p := &s.Install.Placements[0]
		p.Configs = []v1alpha1.ConfigReference{h.reference("colors")}
		rollout.MaxConcurrency, rollout.MaxFailures = new(intstr.FromString("10%")), new(intstr.FromInt32(maxFailures))
		p.Rollout = rollout
	})
	return f
}

// begin starts the controllers.
func (f *fleet) begin() {
	f.running, f.began = f.start(addon.Options{Agents: []addon.Agent{versioned{f.name("fleet"), f.version}}}), time.Now()
}

func (f *fleet) restart() {
	f.stop()
	f.begin()
}

// count starts to count writes.
func (f *fleet) count() {
	f.wire.Reset()
	f.began = time.Now()
}

// all waits until all members have a text in their manifests and are healthy, and nothing is written any more.
func (f *fleet) all(text string) map[string]int {
	f.T.Helper()
	f.eventuallySlow("all have "+text, func() bool {
		s := f.get("fleet").Status
		return len(f.namespacesWith(text)) == len(f.names) && int(s.Counts.Available) == len(f.names) &&
			int(s.Counts.Updated) == len(f.names) &&
			s.Placements[0].Rollout.Phase == placementv1alpha1.PhaseSucceeded
	})
	return f.waitUntilQuiet()
}

// waitUntilQuiet waits until nothing is written any more, and checks the limits. It returns the writes.
func (f *fleet) waitUntilQuiet() map[string]int {
	f.T.Helper()
	f.quiet(f.T)
	took := time.Since(f.began)
	n := f.wire.Writes()
	f.T.Logf("%d members, %.1fs: %v", len(f.names), took.Seconds(), n)
	require.LessOrEqual(f.T, n["PATCH addons/status"], 2*len(f.names)/5+int(took.Seconds()),
		"want writes for the state of the rollout, and one per second for its progress")
	return n
}

// halts waits until the rollout has halted and nothing is written any more, and returns the members with a text.
func (f *fleet) halts(text string) []string {
	f.T.Helper()
	f.eventuallySlow("the rollout halts", func() bool {
		return f.get("fleet").Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	f.waitUntilQuiet()
	updated, bad := f.namespacesWith(text), 0
	for _, w := range f.now() {
		if failed(w) {
			bad++
		}
	}
	require.Greater(f.T, bad, maxFailures)
	require.LessOrEqual(f.T, bad, f.slots+maxFailures)
	require.Less(f.T, len(updated), len(f.names)/2)
	return updated
}

func (f *fleet) eventuallySlow(description string, condition func() bool) {
	f.T.Helper()
	mustertest.Holds(f.T, 3*time.Minute, description, condition)
}

// failSome makes every fourth member fail with a text.
func (f *fleet) failSome(text string) {
	var some []string
	for i := 3; i < len(f.names); i += 4 {
		some = append(some, f.namespaceOf(f.names[i]))
	}
	f.members.setReadiness(func(w *workv1alpha1.Work) bool {
		return !slices.Contains(some, w.Namespace) || !manifestsContain(w, text)
	})
}

// TestFleet changes the configuration and the version of an add-on on many members; some changes fail.
func TestFleet(t *testing.T) { testkit.Virtual(t, testFleet) }

func testFleet(t *testing.T) {
	f := newFleet(t, fleetSize, placementv1alpha1.RolloutStrategy{Type: placementv1alpha1.RolloutProgressive})
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"all members get the add-on", f.installs},
		{"a rollout fails and continues after the members recover", f.repaired},
		{"a rollout fails and the configuration is corrected", f.corrected},
		{"no member reports", f.waits},
		{"the controllers restart during a rollout", f.restarts},
		{"the agent has another version", f.upgrades},
	} {
		testkit.Step(t, step.name, func() {
			f.count()
			step.do()
			f.check(t)
		})
	}
}

func (f *fleet) installs() {
	n := f.all("blue")
	require.Equal(f.T, len(f.names), n["POST memberaddons"])
	require.Equal(f.T, len(f.names), n["POST works"])
	require.Zero(f.T, n["PATCH works"])
	require.Zero(f.T, n["PATCH memberaddons"])
	require.LessOrEqual(f.T, n["PATCH memberaddons/status"], 3*len(f.names)+len(f.names)/10,
		"want at most three: waiting, assigned, available")
}

func (f *fleet) repaired() {
	f.failSome("red")
	f.color("colors", "red")
	updated := f.halts("red")
	f.restart()
	f.waitUntilQuiet()
	require.Empty(f.T, f.wire.Writes(), "a restart must not write")
	require.ElementsMatch(f.T, updated, f.namespacesWith("red"))
	f.members.setReadiness(nil)
	n := f.all("red")
	require.Equal(f.T, len(f.names)-len(updated), n["PATCH works"])
}

func (f *fleet) corrected() {
	f.failSome("pink")
	f.color("colors", "pink")
	f.halts("pink")
	f.count()
	f.color("colors", "white")
	n := f.all("white")
	require.Equal(f.T, len(f.names), n["PATCH works"])
	require.LessOrEqual(f.T, n["PATCH memberaddons/status"], 4*len(f.names),
		"want at most four: two hold reasons, assigned, available")
}

// waits checks that no other member is updated while all slots are taken by members that do not respond, and that the
// state survives a restart.
func (f *fleet) waits() {
	f.members.stopAll()
	f.color("colors", "gray")
	f.eventuallySlow("all slots are used", func() bool { return len(f.namespacesWith("gray")) >= f.slots })
	f.waitUntilQuiet()
	updated := f.namespacesWith("gray")
	require.Len(f.T, updated, f.slots)
	f.restart()
	f.waitUntilQuiet()
	require.Empty(f.T, f.wire.Writes())
	require.ElementsMatch(f.T, updated, f.namespacesWith("gray"))
	f.members.setReadiness(nil)
	f.all("gray")
}

func (f *fleet) restarts() {
	before, writes := f.now(), 0
	f.color("colors", "black")
	for i := 1; i < 4; i++ {
		f.eventuallySlow("a part of the members is updated",
			func() bool { return len(f.namespacesWith("black")) >= i*len(f.names)/5 })
		f.stop()
		require.Less(f.T, len(f.namespacesWith("black")), len(f.names), "want a rollout in progress")
		writes += f.wire.Writes()["PATCH works"]
		f.begin()
	}
	writes += f.all("black")["PATCH works"]
	require.LessOrEqual(f.T, writes, len(f.names)+3*f.slots,
		"want repeated writes only for members whose reports were not observed before a restart")
	for namespace, w := range f.now() {
		require.Equal(f.T, before[namespace].Generation+1, w.Generation, "want one assignment for each member")
	}
}

func (f *fleet) upgrades() {
	f.stop()
	f.version = "v2"
	f.failSome(`"v2"`)
	f.begin()
	updated := f.halts(`"v2"`)
	f.members.setReadiness(nil)
	n := f.all(`"v2"`)
	require.Equal(f.T, len(f.names), n["PATCH works"])
	require.NotEmpty(f.T, updated)
	f.restart()
	f.waitUntilQuiet()
	require.Empty(f.T, f.wire.Writes())
}
