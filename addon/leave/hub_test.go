package leave_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/leave"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	workleave "github.com/muster-sdk/muster/work/leave"
)

// Tests with a hub are not parallel: each has the plane's members for itself.

// watched is a gate whose results are recorded.
type watched struct {
	membership.LeaveGate
	membership.Forcer
	answered func(gate string, remaining []string)
}

func watch(gate interface {
	membership.LeaveGate
	membership.Forcer
}, answered func(string, []string)) watched {
	return watched{gate, gate, answered}
}

func (g watched) Remaining(ctx context.Context, member membership.Member) ([]string, error) {
	remaining, err := g.LeaveGate.Remaining(ctx, member)
	g.answered(g.Name(), remaining)
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

func newHubWorld(t *testing.T, name string) *hubWorld {
	t.Helper()
	w := &hubWorld{world: newWorld(t, name), clock: &mustertest.Clock{}}
	w.create(&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: membershipv1alpha1.MemberClusterSpec{Accepted: new(true)}})
	w.stop = w.serve()
	w.eventually(func() error {
		return errorIf(!w.there(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.member.Namespace}}), "no namespace")
	})
	return w
}

// serve runs a hub until the returned function is called, or the test ends.
func (w *hubWorld) serve() (stop func()) {
	w.t.Helper()
	return mustertest.StartManager(w.t, plane.ForTest(w.t).Config(), manager.Options{Scheme: scheme},
		func(mgr manager.Manager) error {
			c := mgr.GetClient()
			return hub.SetupWithManager(mgr, hub.Options{Clock: w.clock, Gates: []membership.LeaveGate{
				watch(leave.GateAt(c, w.clock), w.answered), watch(workleave.Gate(c), w.answered),
			}})
		})
}

func (w *hubWorld) answered(gate string, remaining []string) {
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

func (w *hubWorld) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.answers)
}

func (w *hubWorld) cluster() *membershipv1alpha1.MemberCluster {
	w.t.Helper()
	c := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: w.member.Name}}
	w.there(c)
	return c
}

func (w *hubWorld) leaves() {
	w.t.Helper()
	require.NoError(w.t, w.admin.Delete(w.t.Context(), w.cluster()))
}

// waits returns when the leave waits for the gate, with an entry that contains a text.
func (w *hubWorld) waits(gate, text string) {
	w.t.Helper()
	w.eventually(func() error {
		l := w.cluster().Status.Leave
		if l == nil || l.Waiting != gate || !strings.Contains(strings.Join(l.Remaining, "\n"), text) {
			return fmt.Errorf("the leave is %+v", l)
		}
		return nil
	})
}

// gone calls act until the member and its namespace are deleted.
func (w *hubWorld) gone(act func()) {
	w.t.Helper()
	w.eventually(func() error {
		act()
		if w.there(w.cluster()) {
			return fmt.Errorf("the leave is %+v", w.cluster().Status.Leave)
		}
		return errorIf(w.there(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.member.Namespace}}),
			"the namespace is there")
	})
}

// TestLeaveInOrder checks that add-ons are removed before Works, also if the hub restarts in between.
func TestLeaveInOrder(t *testing.T) {
	w := newHubWorld(t, "order")
	w.run()
	mesh := w.addon("mesh")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: "addon-mesh"}})
	works := []client.Object{w.work("addon-mesh-0", "mesh", ""), w.work("shop", "", "")}
	w.applied("addon-mesh-0", "shop")

	w.leaves()
	w.waits("addons", "memberaddon/mesh: no controller has observed")
	w.played.look()
	w.waits("addons", "memberaddon/mesh: A pre-delete hook is running.")
	w.stop()
	for _, work := range works {
		require.True(t, w.there(work) && work.GetDeletionTimestamp() == nil, "the hooks are not done")
	}
	w.serve()
	w.waits("addons", "memberaddon/mesh: A pre-delete hook is running.")
	w.create(&v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: "late"}})
	w.gone(func() {
		if w.there(mesh) {
			require.True(t, w.there(works[1]) && works[1].GetDeletionTimestamp() == nil, "other Works wait for the add-ons")
		}
		w.played.look()
	})
	require.Equal(t, []string{"addons shut", "addons open", "works shut", "addons open", "works open"}, w.said())
	require.Equal(t, wayOut, w.played.did)
	require.Empty(t, w.has())
}

// A forced leave ends regardless of which components are running.
func TestForcedLeave(t *testing.T) {
	t.Run("a controller that lives does what it can itself", func(t *testing.T) {
		w := newHubWorld(t, "alive")
		mesh := w.addon("mesh")
		w.work("addon-mesh-0", "mesh", "")
		w.work("shop", "", "")
		w.leaves()
		w.eventually(func() error {
			w.played.look()
			return errorIf(!slices.Contains(w.played.did, removal.RunHooks), "nothing happens")
		})
		w.clock.Move(membershipDeadline)
		w.eventually(func() error {
			return errorIf(!w.there(mesh) || mesh.Spec.RemovalDeadlineSeconds == nil, "no deadline is set")
		})
		require.Contains(t, mesh.Finalizers, v1alpha1.MemberAddonFinalizer)
		w.gone(w.played.look)
		require.True(t, w.played.forced["mesh"])
		require.Contains(t, w.played.did, removal.StripFinalizers)
		require.Equal(t, removal.RemoveFinalizer, w.played.did[len(w.played.did)-1])
	})
	t.Run("one that never was there is not waited for", func(t *testing.T) {
		w := newHubWorld(t, "never")
		w.addon("mesh")
		w.work("addon-mesh-0", "mesh", "")
		w.leaves()
		w.waits("addons", "memberaddon/mesh: no controller has observed")
		w.clock.Move(membershipDeadline)
		w.gone(func() {})
		require.Equal(t, []string{"addons shut"}, w.said())
	})
	t.Run("what the member is to keep it keeps, whichever gate was shut", func(t *testing.T) {
		w := newHubWorld(t, "keeps")
		w.run() // an agent that still sees its Works, and may do all
		mustertest.Change(t, w.admin, w.cluster(), func(c *membershipv1alpha1.MemberCluster) {
			c.Spec.Leave.Resources = membershipv1alpha1.OrphanResources
		})
		w.addon("mesh")
		w.work("addon-mesh-0", "mesh", "")
		w.work("shop", "", "")
		w.applied("addon-mesh-0", "shop")
		w.leaves()
		w.waits("addons", "memberaddon/mesh: no controller has observed")
		w.clock.Move(membershipDeadline)
		w.gone(func() {})
		require.Equal(t, []string{"addons shut"}, w.said(), "the gate of Works was not evaluated")
		require.Equal(t, []string{"addon-mesh-0", "shop"}, w.has())
	})
	t.Run("gates have their time also when the deadline is shortened to long ago", func(t *testing.T) {
		w := newHubWorld(t, "shortened")
		w.addon("mesh")
		w.work("addon-mesh-0", "mesh", "")
		w.work("shop", "", "")
		w.leaves()
		w.waits("addons", "memberaddon/mesh: no controller has observed")
		w.clock.Move(membershipDeadline / 2)
		mustertest.Change(t, w.admin, w.cluster(), func(c *membershipv1alpha1.MemberCluster) {
			c.Spec.Leave.DeadlineSeconds = 1
		})
		w.gone(func() {})
	})
	t.Run("one that died has some time to come back", func(t *testing.T) {
		w := newHubWorld(t, "died")
		mesh := w.addon("mesh")
		w.work("addon-mesh-0", "mesh", "")
		w.leaves()
		w.eventually(func() error {
			w.played.look()
			return errorIf(len(w.played.did) == 0, "nothing happens")
		})
		w.clock.Move(membershipDeadline)
		w.eventually(func() error {
			return errorIf(!w.there(mesh) || mesh.Spec.RemovalDeadlineSeconds == nil, "no deadline is set")
		})
		require.Contains(t, mesh.Finalizers, v1alpha1.MemberAddonFinalizer)
		w.stop()
		w.clock.Move(31 * time.Second)
		w.serve()
		w.gone(func() {})
	})
}

// membershipDeadline is the default of leave.deadlineSeconds.
const membershipDeadline = 15 * time.Minute
