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

// TestRestore checks that one member survives restores of the hub's etcd: to a state before the member joined, to an
// earlier state, and to a state whose restore later writes hide.
func TestRestore(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 110)
	w := newSystem(t, hub.Options{})
	w.token("early") // A JoinToken has a credential only after the hub has created its own objects.
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
func (w *system) restoreUnderRunningProcesses(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	earlier := w.version
	w.update()
	before, restores := m.uids(t), m.restoreRecord(t).Restored
	w.churn()

	require.NoError(t, w.plane.Restore(ctx, snapshot))
	w.waitUntilWritesEnd(time.Minute)
	m.requireUnchanged(t, before)
	w.waitUntilJoined(m.name)
	w.version = earlier
	w.waitForWorkloads(m) // The desired version of the restored hub.
	w.update()
	m.requireUnchanged(t, before)
	w.waitForRestoreRecord(m, restores)
	w.eventually("the agent reports the restore", func() error { return m.hasEvent(ctx, "HubRestored") })
}

// restoreHiddenByWrites puts the hub's etcd back to a state that is only a few writes older, and writes so much
// that its resourceVersion is soon higher than before. The agent detects the restore by its Lease. Hub and agent stop
// writing within a minute and nothing on the member is deleted. The hub detects that its caches do not follow after
// three minutes only, which internal/simulation tests: at the latest after its next start, changes reach the member.
func (w *system) restoreHiddenByWrites(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	w.update()
	w.waitForHeartbeats(m) // Only a heartbeat since the snapshot can show the restore.
	before, restores := m.uids(t), m.restoreRecord(t).Restored

	require.NoError(t, w.plane.Restore(ctx, snapshot))
	w.churn()
	w.write()
	w.waitForRestoreRecord(m, restores)
	w.waitUntilWritesEnd(time.Minute)
	m.requireUnchanged(t, before)
	w.stopHub()
	w.startHub()
	w.waitForWorkloads(m)
	w.update()
	m.requireUnchanged(t, before)
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
	w.waitForHeartbeats(m)

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
		return fmt.Errorf("none of %d Works has the change", len(works.Items))
	})
	m.requireUnchanged(t, before)
	proxy.Heal()
	w.waitForWorkloads(m)
	w.waitUntilJoined(m.name)
	w.waitForOrphans(m, 1)
	w.update()
	m.requireUnchangedFor(t, before, quiet)
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
			if record := m.restoreRecord(t); record.Required < epoch {
				return fmt.Errorf("the record of the agent is %+v", record)
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
	w.waitForHeartbeats(m)
	require.NoError(t, w.plane.Restore(ctx, snapshot))
	restored(1)
	first := m.restoreRecord(t).Required
	changeByHand("2", "late")
	applied("late", "2")
	before := m.uids(t)
	require.Contains(t, before, "ConfigMap default/late")
	w.churn()
	w.waitForHeartbeats(m)

	proxy.Stall()
	require.NoError(t, w.plane.Restore(ctx, snapshot))
	for _, version := range []string{"3", "4", "5"} {
		changeByHand(version)
	}
	proxy.Heal()
	restored(first + 1)
	w.startHub()
	w.eventually("the hub confirms that it is consistent", func() error {
		if record := m.restoreRecord(t); record.Required != 0 {
			return fmt.Errorf("the record of the agent is %+v", record)
		}
		return nil
	})
	applied("by-hand", "5")
	w.waitUntilJoined(m.name)
	w.waitForOrphans(m, 1)
	w.update()
	m.requireUnchangedFor(t, before, quiet)
}

// behindProxy returns a system with the member east, whose agent reaches the hub through a proxy alone.
func behindProxy(t *testing.T) (*system, *member, *localplane.Proxy) {
	t.Helper()
	w := prepareSystem(t)
	w.startHub()
	proxy, err := localplane.NewProxy(w.plane.Config().Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	m := w.newMember("east")
	m.hub, w.members = through(proxy), []*member{m}
	w.register(m)
	w.waitUntilJoined(m.name)
	w.deploy()
	return w, m, proxy
}

// waitForHeartbeats waits until the agent of a member has sent two heartbeats. The agent then has the response to the
// first one, with a resourceVersion of the hub that is later than all writes before. With an earlier resourceVersion,
// the writes during the disconnection of the agent would hide the restore.
func (w *system) waitForHeartbeats(m *member) {
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
				err = errors.New("the Lease is unchanged")
			}
			return err
		})
	}
}

// restoreRecord returns the agent's record of restores of the hub.
func (m *member) restoreRecord(t testing.TB) (hub struct{ Epoch, Required, Restored int64 }) {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: agent.DefaultNamespace, Name: agent.DefaultStoreSecret}
	require.NoError(t, m.client.Get(t.Context(), key, secret))
	record := struct{ Hub any }{&hub}
	require.NoError(t, json.Unmarshal(secret.Data["record"], &record))
	return hub
}

// waitForRestoreRecord waits until an agent has recorded a restore after the one with this epoch.
func (w *system) waitForRestoreRecord(m *member, after int64) {
	w.t.Helper()
	w.eventually("the agent records the restore", func() error {
		if record := m.restoreRecord(w.t); record.Restored <= after {
			return fmt.Errorf("the record of the agent is %+v", record)
		}
		return nil
	})
}

// waitForOrphans waits until the hub reports this number of orphaned objects on a member.
func (w *system) waitForOrphans(m *member, objects int64) {
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

// waitUntilWritesEnd waits until hub and agents have sent no write for the duration quiet, and fails if the last write
// was later than the limit. Leases and Events are not counted.
func (w *system) waitUntilWritesEnd(limit time.Duration) {
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
			for request, n := range writes {
				if now[request] == n {
					delete(now, request)
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
func (w *system) writes() map[string]int {
	writes := w.wire.Writes()
	maps.DeleteFunc(writes, func(request string, _ int) bool { return strings.HasSuffix(request, " leases") })
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

// restoreOlderThanTheMember restores a backup that was taken before the member joined. The member keeps all objects,
// waits for an administrator, and is re-adopted.
func (w *system) restoreOlderThanTheMember(t *testing.T, snapshot *localplane.Snapshot) {
	m := w.members[0]
	before := m.uids(t)
	w.churn()

	require.NoError(t, w.plane.Restore(t.Context(), snapshot))
	m.requireUnchangedFor(t, before, 2*quiet)
	// The credentials of the member and of its JoinToken do not exist anymore.
	m.install(t, w.token(m.name))
	w.accept(m)
	w.waitUntilJoined(m.name)
	w.apply()
	w.update()
	m.requireUnchanged(t, before)
}

// churn writes to the hub, so that the resourceVersion of a snapshot is so far behind that a watch from before the
// restore stays silent for longer than any test waits. The restored hub has fewer than 1000 writes a minute.
func (w *system) churn() {
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
