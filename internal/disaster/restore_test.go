package disaster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestRestore lets one member survive restores of the hub's etcd: to a state before it joined, to an earlier state, and
// to one that later writes hide.
func TestRestore(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 110)
	w := newWorld(t, hub.Options{})
	w.token("early") // The hub has made its own objects by then.
	empty, err := w.plane.Snapshot(t.Context())
	require.NoError(t, err)
	w.join("east")
	w.deploy()
	w.step("UnderRunningProcesses", w.restoreUnderRunningProcesses)
	w.step("HiddenByWrites", w.restoreHiddenByWrites)
	w.step("OlderThanTheMember", func(t *testing.T) { w.restoreOlderThanTheMember(t, empty) })
}

// restoreUnderRunningProcesses puts the hub's etcd back to an earlier state while the hub and the agent run. The
// member does not change, hub and agent stop writing within a minute, and changes reach the member again afterwards.
func (w *world) restoreUnderRunningProcesses(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	earlier := w.version
	w.update()
	before, restores := m.uids(t), m.restores(t).Restored
	w.churn()

	require.NoError(t, w.plane.Restore(ctx, snapshot))
	w.stopsWriting(time.Minute)
	m.unchanged(t, before)
	w.joined(m.name)
	w.version = earlier
	w.running(m) // What the restored hub wants.
	w.update()
	m.unchanged(t, before)
	w.recordsRestore(m, restores)
	w.eventually("the agent reports the restore", func() error { return m.hasEvent(ctx, "HubRestored") })
}

// restoreHiddenByWrites puts the hub's etcd back to a state that is only a few writes older, and writes so much
// that its resourceVersion is soon higher than before. The agent notices the restore by its Lease. Hub and agent stop
// writing within a minute and nothing on the member is deleted. The hub notices that its caches do not follow after
// three minutes only, which internal/simulation tests: at the latest after its next start, changes reach the member.
func (w *world) restoreHiddenByWrites(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	w.update()
	w.heardBy(m) // Only a heartbeat since the snapshot can show the restore.
	before, restores := m.uids(t), m.restores(t).Restored

	require.NoError(t, w.plane.Restore(ctx, snapshot))
	w.churn()
	w.write()
	w.recordsRestore(m, restores)
	w.stopsWriting(time.Minute)
	m.unchanged(t, before)
	w.stopHub()
	w.startHub()
	w.running(m)
	w.update()
	m.unchanged(t, before)
}

// TestRestore_ChangedBeforeTheAgentReturns puts the hub's etcd back to a state before an object was added to a WorkSet.
// A user changes the WorkSet while the agent cannot reach the hub. The agent observes a Work whose generation is not
// lower than before, and keeps the object as an orphan.
func TestRestore_ChangedBeforeTheAgentReturns(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 40)
	w, m, proxy := behindProxy(t)
	ctx := t.Context()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	set := &placementv1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop"}}
	mustertest.Change(t, w.client, set, func(s *placementv1alpha1.WorkSet) {
		late := workv1alpha1.Manifest{}
		late.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late","namespace":"shop"}}`)
		s.Spec.Manifests = append(s.Spec.Manifests, late)
	})
	w.eventually("the object is delivered", func() error {
		return m.client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "late"}, &corev1.ConfigMap{})
	})
	before := m.uids(t)
	require.Contains(t, before, "ConfigMap shop/late")
	w.churn()
	w.heardBy(m)

	proxy.Stall()
	require.NoError(t, w.plane.Restore(ctx, snapshot))
	w.write()
	w.eventually("the Work has the change", func() error {
		var works workv1alpha1.WorkList
		if err := w.client.List(ctx, &works, client.InNamespace("member-east")); err != nil {
			return err
		}
		for i := range works.Items {
			for _, manifest := range works.Items[i].Spec.Manifests {
				if strings.Contains(string(manifest.Raw), `"version":"`+w.version+`"`) {
					return nil
				}
			}
		}
		return fmt.Errorf("none of %d Works has it", len(works.Items))
	})
	m.unchanged(t, before)
	proxy.Heal()
	w.running(m)
	w.joined(m.name)
	w.orphaned(m, 1)
	w.update()
	m.stays(t, before, quiet)
}

// TestRestore_TwiceBeforeTheHubConfirms puts the hub's etcd back twice while no controllers of the hub run, so that the
// agent still waits for the hub to confirm the first restore. An object that a user added to a Work between the two
// restores is kept as an orphan, although the Work has a later generation when the agent observes it again.
func TestRestore_TwiceBeforeTheHubConfirms(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 45)
	w, m, proxy := behindProxy(t)
	ctx := t.Context()
	w.stopHub()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	restored := func(epoch int64) {
		w.eventually("the agent waits for the hub to confirm a restore", func() error {
			if is := m.restores(t); is.Required < epoch {
				return fmt.Errorf("its record is %+v", is)
			}
			return nil
		})
	}
	changeByHand := func(version string, objects ...string) {
		work := w.handWritten(m)
		w.eventually("the Work is changed", func() error {
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			work.Spec.Manifests = nil
			for _, name := range append([]string{"by-hand"}, objects...) {
				manifest := workv1alpha1.Manifest{}
				manifest.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,`+
					`"namespace":"default"},"data":{"version":%q}}`, name, version)
				work.Spec.Manifests = append(work.Spec.Manifests, manifest)
			}
			return w.client.Update(ctx, work)
		})
	}
	applied := func(name, version string) {
		w.eventually(fmt.Sprintf("ConfigMap %s has version %s", name, version), func() error {
			config := &corev1.ConfigMap{}
			err := m.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, config)
			if err == nil && config.Data["version"] != version {
				return fmt.Errorf("ConfigMap %s has version %q", name, config.Data["version"])
			}
			return err
		})
	}

	w.churn()
	w.heardBy(m)
	require.NoError(t, w.plane.Restore(ctx, snapshot))
	restored(1)
	first := m.restores(t).Required
	changeByHand("2", "late")
	applied("late", "2")
	before := m.uids(t)
	require.Contains(t, before, "ConfigMap default/late")
	w.churn()
	w.heardBy(m)

	proxy.Stall()
	require.NoError(t, w.plane.Restore(ctx, snapshot))
	for _, version := range []string{"3", "4", "5"} {
		changeByHand(version)
	}
	proxy.Heal()
	restored(first + 1)
	w.startHub()
	w.eventually("the hub confirms that it is consistent", func() error {
		if is := m.restores(t); is.Required != 0 {
			return fmt.Errorf("the record of the agent is %+v", is)
		}
		return nil
	})
	applied("by-hand", "5")
	w.joined(m.name)
	w.orphaned(m, 1)
	w.update()
	m.stays(t, before, quiet)
}

// behindProxy returns a world with the member east, whose agent reaches the hub through a proxy alone.
func behindProxy(t *testing.T) (*world, *member, *localplane.Proxy) {
	t.Helper()
	w := prepareWorld(t)
	w.startHub()
	proxy, err := localplane.NewProxy(w.plane.Config().Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	m := w.newMember("east")
	m.hub, w.members = through(proxy), []*member{m}
	w.register(m)
	w.joined(m.name)
	w.deploy()
	return w, m, proxy
}

// heardBy waits until the agent of a member has sent two heartbeats: it has the answer to the first one then, and with
// it a resourceVersion of the hub after what was written before. A restore that it could compare only with an earlier
// one is hidden by what is written while the agent is cut off.
func (w *world) heardBy(m *member) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: "member-" + m.name, Name: membership.LeaseName}
	version := func() (string, error) {
		lease := &coordinationv1.Lease{}
		err := w.client.Get(w.t.Context(), key, lease)
		return lease.ResourceVersion, err
	}
	for range 2 {
		before, err := version()
		require.NoError(w.t, err)
		w.eventually(m.name+" sends a heartbeat", func() error {
			now, err := version()
			if err == nil && now == before {
				err = errors.New("the Lease is as before")
			}
			return err
		})
	}
}

// restores is what the agent has recorded about restores of the hub.
func (m *member) restores(t testing.TB) (hub struct{ Epoch, Required, Restored int64 }) {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: agent.DefaultNamespace, Name: agent.DefaultStoreSecret}
	require.NoError(t, m.client.Get(t.Context(), key, secret))
	record := struct{ Hub any }{&hub}
	require.NoError(t, json.Unmarshal(secret.Data["record"], &record))
	return hub
}

// recordsRestore waits until an agent has recorded a restore after the one with this epoch.
func (w *world) recordsRestore(m *member, after int64) {
	w.t.Helper()
	w.eventually("the agent records the restore", func() error {
		if is := m.restores(w.t); is.Restored <= after {
			return fmt.Errorf("its record is %+v", is)
		}
		return nil
	})
}

// orphaned waits until the hub reports this number of orphaned objects on a member.
func (w *world) orphaned(m *member, objects int64) {
	w.t.Helper()
	w.eventually("the hub reports the orphans", func() error {
		cluster := &membershipv1alpha1.MemberCluster{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: m.name}, cluster); err != nil {
			return err
		}
		if o := cluster.Status.Orphans; o == nil || o.Objects != objects {
			return fmt.Errorf("orphans are %+v", o)
		}
		return nil
	})
}

// stopsWriting waits until hub and agents have sent no write for a while, and fails if the last one came later than the
// limit. Leases and Events are not counted.
func (w *world) stopsWriting(limit time.Duration) {
	w.t.Helper()
	began := time.Now()
	last, writes := began, w.writes()
	for time.Since(last) < quiet {
		<-time.After(200 * time.Millisecond)
		now := w.writes()
		if maps.Equal(now, writes) {
			continue
		}
		last = time.Now()
		if last.Sub(began) > limit {
			for what, n := range writes {
				if now[what] == n {
					delete(now, what)
				}
			}
			require.Fail(w.t, "Writes do not end", "%s after the disaster, hub and agents have just sent %v, and in all %v",
				limit, now, w.writes())
		}
		writes = now
	}
	w.t.Logf("Hub and agents sent their last write %s after the restore: %v", last.Sub(began), writes)
}

// writes returns the number of requests that write, by method and resource.
func (w *world) writes() map[string]int {
	writes := w.wire.Writes()
	maps.DeleteFunc(writes, func(what string, _ int) bool { return strings.HasSuffix(what, " leases") })
	return writes
}

// hasEvent returns an error unless the agent has written an Event with this reason.
func (m *member) hasEvent(ctx context.Context, reason string) error {
	var events eventsv1.EventList
	if err := m.client.List(ctx, &events, client.InNamespace(agent.DefaultNamespace)); err != nil {
		return err
	}
	var reasons []string
	for i := range events.Items {
		reasons = append(reasons, events.Items[i].Reason)
	}
	if slices.Contains(reasons, reason) {
		return nil
	}
	return fmt.Errorf("Events have the reasons %v", reasons)
}

// restoreOlderThanTheMember restores a backup that was taken before the member joined. The member keeps
// everything, waits for an administrator, and is re-adopted.
func (w *world) restoreOlderThanTheMember(t *testing.T, snapshot *localplane.Snapshot) {
	m := w.members[0]
	before := m.uids(t)
	w.churn()

	require.NoError(t, w.plane.Restore(t.Context(), snapshot))
	m.stays(t, before, 2*quiet)
	// The credentials of the member and of its JoinToken do not exist any more.
	m.install(t, w.token(m.name))
	w.accept(m)
	w.joined(m.name)
	w.apply()
	w.update()
	m.unchanged(t, before)
}

// churn writes to the hub, so that the resourceVersion of a snapshot is so far behind that a watch from before the
// restore stays silent for longer than any test waits. The restored hub has fewer than 1000 writes a minute.
func (w *world) churn() {
	w.t.Helper()
	const writers = 16
	each := atFullLength(250, 60)
	var group errgroup.Group
	for i := range writers {
		group.Go(func() error {
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("churn-", i)}}
			err := w.client.Create(w.t.Context(), config)
			if apierrors.IsAlreadyExists(err) {
				err = w.client.Get(w.t.Context(), client.ObjectKeyFromObject(config), config)
			}
			if err != nil {
				return err
			}
			for n := range each {
				config.Data = map[string]string{"n": fmt.Sprint(n)}
				if err := w.client.Update(w.t.Context(), config); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(w.t, group.Wait())
}
