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

// hubWorld is a world with a running hub, the gates of add-ons and of Works, and a member with an agent for Works only.
type hubWorld struct {
	*world
	clock *mustertest.Clock
	stop  func() // the hub

	mu      sync.Mutex
	answers []string // of the gates: the name, and whether it was open
}

func newHubWorld(w *world) *hubWorld {
	w.t.Helper()
	name := w.member.Name
	h := &hubWorld{world: w, clock: &mustertest.Clock{}}
	w.create(&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: membershipv1alpha1.MemberClusterSpec{Accepted: new(true)}})
	h.stop = h.serve()
	w.eventually(func() error {
		return errorIf(!w.exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.member.Namespace}}), "no namespace")
	})
	return h
}

// serve runs a hub until the returned function is called, or the test ends.
func (w *hubWorld) serve() (stop func()) {
	w.t.Helper()
	options := hub.Options{Clock: w.clock}
	memory, inMemory := w.server.(memoryServer)
	if inMemory { // Its configs contain no address.
		options.Server, options.CA = memory.server.URL(), memory.server.CertificateAuthority()
	}
	stopManager := mustertest.StartManager(w.t, w.server.Config(), manager.Options{Scheme: scheme},
		func(mgr manager.Manager) error {
			c := mgr.GetClient()
			options.Gates = []membership.LeaveGate{
				watch(leave.GateAt(c, w.clock), w.record), watch(workleave.Gate(c), w.record),
			}
			return hub.SetupWithManager(mgr, options)
		})
	if !inMemory {
		return stopManager
	}
	// A watch of metadata of controller-runtime never ends if it stops while an event is pending.
	w.t.Cleanup(synctest.Wait)
	return func() {
		synctest.Wait()
		stopManager()
	}
}

func (w *hubWorld) record(gate string, remaining []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := gate + " open"
	if len(remaining) > 0 {
		answer = gate + " shut"
	}
	if len(w.answers) == 0 || w.answers[len(w.answers)-1] != answer {
		w.answers = append(w.answers, answer)
	}
}

func (w *hubWorld) recorded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.answers)
}

func (w *hubWorld) cluster() *membershipv1alpha1.MemberCluster {
	w.t.Helper()
	c := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: w.member.Name}}
	w.exists(c)
	return c
}

func (w *hubWorld) deleteMemberCluster() {
	w.t.Helper()
	require.NoError(w.t, w.admin.Delete(w.t.Context(), w.cluster()))
}

// waitForGate returns when the leave waits for the gate, with an entry that contains a text.
func (w *hubWorld) waitForGate(gate, text string) {
	w.t.Helper()
	w.eventually(func() error {
		l := w.cluster().Status.Leave
		if l == nil || l.Waiting != gate || !strings.Contains(strings.Join(l.Remaining, "\n"), text) {
			return fmt.Errorf("status.leave: want gate %s with %q, got %+v", gate, text, l)
		}
		return nil
	})
}

// gone calls act until the member and its namespace are deleted.
func (w *hubWorld) waitUntilDeleted(act func()) {
	w.t.Helper()
	w.eventually(func() error {
		act()
		if w.exists(w.cluster()) {
			return fmt.Errorf("MemberCluster exists: status.leave is %+v", w.cluster().Status.Leave)
		}
		return errorIf(w.exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.member.Namespace}}),
			"the namespace exists")
	})
}

// TestLeave_AddonsBeforeWorks checks that add-ons are removed before Works, also if the hub restarts in between.
func TestLeave_AddonsBeforeWorks(t *testing.T) {
	w := newHubWorld(newWorldOnPlane(t, "order"))
	w.run()
	mesh := w.addon("mesh")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: "addon-mesh"}})
	works := []client.Object{w.work("addon-mesh-0", "mesh", ""), w.work("shop", "", "")}
	w.waitForConfigMaps("addon-mesh-0", "shop")

	w.deleteMemberCluster()
	w.waitForGate("addons", "memberaddon/mesh: no controller has observed")
	w.played.reconcile()
	w.waitForGate("addons", "memberaddon/mesh: A pre-delete hook is running.")
	w.stop()
	for _, work := range works {
		require.True(t, w.exists(work) && work.GetDeletionTimestamp() == nil,
			"Works must not be deleted while hooks are running")
	}
	w.serve()
	w.waitForGate("addons", "memberaddon/mesh: A pre-delete hook is running.")
	w.create(&v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: "late"}})
	w.waitUntilDeleted(func() {
		if w.exists(mesh) {
			require.True(t, w.exists(works[1]) && works[1].GetDeletionTimestamp() == nil,
				"other Works must not be deleted before the add-ons")
		}
		w.played.reconcile()
	})
	require.Equal(t, []string{"addons shut", "addons open", "works shut", "addons open", "works open"}, w.recorded())
	require.Equal(t, removalActions, w.played.actions)
	require.Empty(t, w.configMaps())
}

// TestLeave_Forced checks that a forced leave ends regardless of which components are running.
func TestLeave_Forced(t *testing.T) {
	t.Parallel()
	t.Run("a running controller removes the add-on", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			w := newHubWorld(newWorld(t, "alive"))
			mesh := w.addon("mesh")
			w.work("addon-mesh-0", "mesh", "")
			w.work("shop", "", "")
			w.deleteMemberCluster()
			w.eventually(func() error {
				w.played.reconcile()
				return errorIf(!slices.Contains(w.played.actions, removal.RunHooks), "the controller has not acted")
			})
			w.clock.Move(membershipDeadline)
			w.eventually(func() error {
				return errorIf(!w.exists(mesh) || mesh.Spec.RemovalDeadlineSeconds == nil, "no deadline is set")
			})
			require.Contains(t, mesh.Finalizers, v1alpha1.MemberAddonFinalizer)
			w.waitUntilDeleted(w.played.reconcile)
			require.True(t, w.played.forced["mesh"])
			require.Contains(t, w.played.actions, removal.StripFinalizers)
			require.Equal(t, removal.RemoveFinalizer, w.played.actions[len(w.played.actions)-1])
		})
	})
	t.Run("a controller that never ran is not waited for", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			w := newHubWorld(newWorld(t, "never"))
			w.addon("mesh")
			w.work("addon-mesh-0", "mesh", "")
			w.deleteMemberCluster()
			w.waitForGate("addons", "memberaddon/mesh: no controller has observed")
			w.clock.Move(membershipDeadline)
			w.waitUntilDeleted(func() {})
			require.Equal(t, []string{"addons shut"}, w.recorded())
		})
	})
	t.Run("orphaned objects stay on the member", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			w := newHubWorld(newWorld(t, "keeps"))
			w.run() // an agent with all permissions that still observes its Works
			mustertest.Change(t, w.admin, w.cluster(), func(c *membershipv1alpha1.MemberCluster) {
				c.Spec.Leave.Resources = membershipv1alpha1.OrphanResources
			})
			w.addon("mesh")
			w.work("addon-mesh-0", "mesh", "")
			w.work("shop", "", "")
			w.waitForConfigMaps("addon-mesh-0", "shop")
			w.deleteMemberCluster()
			w.waitForGate("addons", "memberaddon/mesh: no controller has observed")
			w.clock.Move(membershipDeadline)
			w.waitUntilDeleted(func() {})
			require.Equal(t, []string{"addons shut"}, w.recorded(), "want no evaluation of the gate of Works")
			require.Equal(t, []string{"addon-mesh-0", "shop"}, w.configMaps())
		})
	})
	t.Run("gates have a grace period if the deadline is shortened to the past", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			w := newHubWorld(newWorld(t, "shortened"))
			w.addon("mesh")
			w.work("addon-mesh-0", "mesh", "")
			w.work("shop", "", "")
			w.deleteMemberCluster()
			w.waitForGate("addons", "memberaddon/mesh: no controller has observed")
			w.clock.Move(membershipDeadline / 2)
			mustertest.Change(t, w.admin, w.cluster(), func(c *membershipv1alpha1.MemberCluster) {
				c.Spec.Leave.DeadlineSeconds = 1
			})
			w.waitUntilDeleted(func() {})
		})
	})
	t.Run("a stopped controller has a grace period", func(t *testing.T) {
		testkit.Virtual(t, func(t *testing.T) {
			w := newHubWorld(newWorld(t, "died"))
			mesh := w.addon("mesh")
			w.work("addon-mesh-0", "mesh", "")
			w.deleteMemberCluster()
			w.eventually(func() error {
				w.played.reconcile()
				return errorIf(len(w.played.actions) == 0, "the controller has not acted")
			})
			w.clock.Move(membershipDeadline)
			w.eventually(func() error {
				return errorIf(!w.exists(mesh) || mesh.Spec.RemovalDeadlineSeconds == nil, "no deadline is set")
			})
			require.Contains(t, mesh.Finalizers, v1alpha1.MemberAddonFinalizer)
			w.stop()
			w.clock.Move(31 * time.Second)
			w.serve()
			w.waitUntilDeleted(func() {})
		})
	})
}

// membershipDeadline is the default of leave.deadlineSeconds.
const membershipDeadline = 15 * time.Minute
