package leave_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/leave"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	workleave "github.com/muster-sdk/muster/work/leave"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// recordingGate is a gate whose results are recorded.
type recordingGate struct {
	membership.LeaveGate
	membership.Forcer
	record func(gate string, remaining []string)
}

func watch(gate interface {
	membership.LeaveGate
	membership.Forcer
}, record func(string, []string)) recordingGate {
	return recordingGate{gate, gate, record}
}

func (g recordingGate) Remaining(ctx context.Context, member membership.Member) ([]string, error) {
	remaining, err := g.LeaveGate.Remaining(ctx, member)
	g.record(g.Name(), remaining)
	return remaining, err
}

// runningHub is a fixture with a running hub, the gates of add-ons and of Works, and a member with an agent for Works
// only.
type runningHub struct {
	*fixture
	clock *mustertest.Clock
	stop  func() // the hub

	mu      sync.Mutex
	answers []string // of the gates: the name, and whether it was open
}

func newRunningHub(f *fixture) *runningHub {
	f.T.Helper()
	name := f.member.Name
	h := &runningHub{fixture: f, clock: &mustertest.Clock{}}
	f.Create(&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: membershipv1alpha1.MemberClusterSpec{Accepted: new(true)}})
	h.stop = h.serve()
	f.eventually(func() error {
		return errorIf(!f.exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.member.Namespace}}), "no namespace")
	})
	return h
}

// serve runs a hub until the returned function is called, or the test ends.
func (h *runningHub) serve() (stop func()) {
	h.T.Helper()
	options := hub.Options{Clock: h.clock}
	memory, inMemory := h.server.(testkit.MemoryServer)
	if inMemory { // Its configs contain no address.
		options.Server, options.CA = memory.URL(), memory.CertificateAuthority()
	}
	stopManager := mustertest.StartManager(h.T, h.server.Config(), manager.Options{Scheme: scheme},
		func(mgr manager.Manager) error {
			c := mgr.GetClient()
			options.Gates = []membership.LeaveGate{
				watch(leave.GateAt(c, h.clock), h.record), watch(workleave.Gate(c), h.record),
			}
			return hub.SetupWithManager(mgr, options)
		})
	if !inMemory {
		return stopManager
	}
	// A watch of metadata of controller-runtime never ends if it stops while an event is pending.
	h.T.Cleanup(synctest.Wait)
	return func() {
		synctest.Wait()
		stopManager()
	}
}

func (h *runningHub) record(gate string, remaining []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := gate + " open"
	if len(remaining) > 0 {
		answer = gate + " shut"
	}
	if len(h.answers) == 0 || h.answers[len(h.answers)-1] != answer {
		h.answers = append(h.answers, answer)
	}
}

func (h *runningHub) recorded() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.answers)
}

func (h *runningHub) cluster() *membershipv1alpha1.MemberCluster {
	h.T.Helper()
	c := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.member.Name}}
	h.exists(c)
	return c
}

func (h *runningHub) deleteMemberCluster() {
	h.T.Helper()
	require.NoError(h.T, h.Client.Delete(h.T.Context(), h.cluster()))
}

// waitForGate returns when the leave waits for the gate, with an entry that contains a text.
func (h *runningHub) waitForGate(gate, text string) {
	h.T.Helper()
	h.eventually(func() error {
		l := h.cluster().Status.Leave
		if l == nil || l.Waiting != gate || !strings.Contains(strings.Join(l.Remaining, "\n"), text) {
			return fmt.Errorf("status.leave: want gate %s with %q, got %+v", gate, text, l)
		}
		return nil
	})
}

// gone calls act until the member and its namespace are deleted.
func (h *runningHub) waitUntilDeleted(act func()) {
	h.T.Helper()
	h.eventually(func() error {
		act()
		if h.exists(h.cluster()) {
			return fmt.Errorf("MemberCluster exists: status.leave is %+v", h.cluster().Status.Leave)
		}
		return errorIf(h.exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.member.Namespace}}),
			"the namespace exists")
	})
}

// TestLeave_AddonsBeforeWorks checks that add-ons are removed before Works, also if the hub restarts in between.
func TestLeave_AddonsBeforeWorks(t *testing.T) {
	f := newRunningHub(newFixtureOnPlane(t, "order"))
	f.run()
	mesh := f.addon("mesh")
	f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: "addon-mesh"}})
	works := []client.Object{f.work("addon-mesh-0", "mesh", ""), f.work("shop", "", "")}
	f.waitForConfigMaps("addon-mesh-0", "shop")

	f.deleteMemberCluster()
	f.waitForGate("addons", "memberaddon/mesh: no controller has observed")
	f.played.reconcile()
	f.waitForGate("addons", "memberaddon/mesh: A pre-delete hook is running.")
	f.stop()
	for _, work := range works {
		require.True(t, f.exists(work) && work.GetDeletionTimestamp() == nil,
			"Works must not be deleted while hooks are running")
	}
	f.serve()
	f.waitForGate("addons", "memberaddon/mesh: A pre-delete hook is running.")
	f.Create(&v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: "late"}})
	f.waitUntilDeleted(func() {
		if f.exists(mesh) {
			require.True(t, f.exists(works[1]) && works[1].GetDeletionTimestamp() == nil,
				"other Works must not be deleted before the add-ons")
		}
		f.played.reconcile()
	})
	require.Equal(t, []string{"addons shut", "addons open", "works shut", "addons open", "works open"}, f.recorded())
	require.Equal(t, removalActions, f.played.actions)
	require.Empty(t, f.configMaps())
}

// TestLeave_Forced checks that a forced leave ends regardless of which components are running.
func TestLeave_Forced(t *testing.T) {
	t.Parallel()
	t.Run("a running controller removes the add-on", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			f := newRunningHub(newFixture(t, "alive"))
			mesh := f.addon("mesh")
			// A forced leave deletes the namespace at once, and removes the agent's finalizer. Another finalizer keeps the Work
			// until the controller acts.
			mustertest.Change(t, f.Client, f.work("addon-mesh-0", "mesh", ""), func(w *workv1alpha1.Work) {
				w.Finalizers = append(w.Finalizers, "example.com/another")
			})
			f.work("shop", "", "")
			f.deleteMemberCluster()
			f.eventually(func() error {
				f.played.reconcile()
				return errorIf(!slices.Contains(f.played.actions, removal.RunHooks), "the controller has not acted")
			})
			f.clock.Move(membershipDeadline)
			f.eventually(func() error {
				return errorIf(!f.exists(mesh) || mesh.Spec.RemovalDeadlineSeconds == nil, "no deadline is set")
			})
			require.Contains(t, mesh.Finalizers, v1alpha1.MemberAddonFinalizer)
			f.waitUntilDeleted(f.played.reconcile)
			require.True(t, f.played.forced["mesh"])
			require.Contains(t, f.played.actions, removal.StripFinalizers)
			require.Equal(t, removal.RemoveFinalizer, f.played.actions[len(f.played.actions)-1])
		})
	})
	t.Run("a controller that never ran is not waited for", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			f := newRunningHub(newFixture(t, "never"))
			f.addon("mesh")
			f.work("addon-mesh-0", "mesh", "")
			f.deleteMemberCluster()
			f.waitForGate("addons", "memberaddon/mesh: no controller has observed")
			f.clock.Move(membershipDeadline)
			f.waitUntilDeleted(func() {})
			require.Equal(t, []string{"addons shut"}, f.recorded())
		})
	})
	t.Run("orphaned objects stay on the member", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			f := newRunningHub(newFixture(t, "keeps"))
			f.run() // an agent with all permissions that still observes its Works
			mustertest.Change(t, f.Client, f.cluster(), func(c *membershipv1alpha1.MemberCluster) {
				c.Spec.Leave.Resources = membershipv1alpha1.OrphanResources
			})
			f.addon("mesh")
			f.work("addon-mesh-0", "mesh", "")
			f.work("shop", "", "")
			f.waitForConfigMaps("addon-mesh-0", "shop")
			f.deleteMemberCluster()
			f.waitForGate("addons", "memberaddon/mesh: no controller has observed")
			f.clock.Move(membershipDeadline)
			f.waitUntilDeleted(func() {})
			require.Equal(t, []string{"addons shut"}, f.recorded(), "want no evaluation of the gate of Works")
			require.Equal(t, []string{"addon-mesh-0", "shop"}, f.configMaps())
		})
	})
	t.Run("gates have a grace period if the deadline is shortened to the past", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			f := newRunningHub(newFixture(t, "shortened"))
			f.addon("mesh")
			f.work("addon-mesh-0", "mesh", "")
			f.work("shop", "", "")
			f.deleteMemberCluster()
			f.waitForGate("addons", "memberaddon/mesh: no controller has observed")
			f.clock.Move(membershipDeadline / 2)
			mustertest.Change(t, f.Client, f.cluster(), func(c *membershipv1alpha1.MemberCluster) {
				c.Spec.Leave.DeadlineSeconds = 1
			})
			f.waitUntilDeleted(func() {})
		})
	})
	t.Run("a stopped controller has a grace period", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			f := newRunningHub(newFixture(t, "died"))
			mesh := f.addon("mesh")
			f.work("addon-mesh-0", "mesh", "")
			f.deleteMemberCluster()
			f.eventually(func() error {
				f.played.reconcile()
				return errorIf(len(f.played.actions) == 0, "the controller has not acted")
			})
			f.clock.Move(membershipDeadline)
			f.eventually(func() error {
				return errorIf(!f.exists(mesh) || mesh.Spec.RemovalDeadlineSeconds == nil, "no deadline is set")
			})
			require.Contains(t, mesh.Finalizers, v1alpha1.MemberAddonFinalizer)
			f.stop()
			f.clock.Move(31 * time.Second)
			f.serve()
			f.waitUntilDeleted(func() {})
		})
	})
}

// membershipDeadline is the default of leave.deadlineSeconds.
const membershipDeadline = 15 * time.Minute
