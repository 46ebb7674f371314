package install_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// tried is an installer that installs nothing. The test sets the result of its Missing.
type tried struct {
	revision string
	client   client.Client

	mu       sync.Mutex
	missing  map[string]string
	installs map[string]int
	together int // how many were under way at most when one began
}

func (i *tried) Revision() string { return i.revision }

func (i *tried) Install(ctx context.Context, target install.Target) error {
	all := &v1alpha1.MemberClusterList{}
	if err := i.client.List(ctx, all); err != nil {
		return err
	}
	underWay := 0
	for at := range all.Items {
		switch reasonOf(&all.Items[at]) {
		case v1alpha1.ReasonInstalling, v1alpha1.ReasonAgentStarting:
			underWay++
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installs[target.Cluster.Name]++
	i.together = max(i.together, underWay)
	return nil
}

func (i *tried) Missing(_ context.Context, target install.Target) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.missing[target.Cluster.Name], nil
}

func (i *tried) mend(member string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.missing, member)
}

func (i *tried) seen() (installs map[string]int, together int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.installs), i.together
}

func reasonOf(cluster *v1alpha1.MemberCluster) string {
	if is := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionInstalled); is != nil {
		return is.Reason
	}
	return ""
}

// startAlone starts a hub that only installs agents: the test sets the health of the members.
func startAlone(t *testing.T, options install.Options, over ...transport.WrapperFunc) *testHub {
	t.Helper()
	p := planes.ForTest(t)
	h := &testHub{t: t, plane: p, client: mustertest.Client(t, p.Config(), newScheme(), crds.Install),
		requests: &counter{}}
	config := h.requests.wrap(h.user("muster-hub", "../hub/rbac/role.yaml", "rbac/role.yaml"))
	for _, each := range over {
		config.Wrap(each)
	}
	h.stop = mustertest.StartManager(t, config, manager.Options{Scheme: newScheme()},
		func(mgr manager.Manager) (err error) {
			h.runner, err = install.New(mgr, options)
			return err
		}, func(mgr manager.Manager) error { return jointoken.SetupWithManager(mgr, jointoken.Options{}) })
	return h
}

// veterans creates members with a healthy agent that was installed by an earlier revision, and deletes them at the end
// of the test.
func (h *testHub) veterans(names ...string) (out []*v1alpha1.MemberCluster) {
	h.t.Helper()
	ctx := h.t.Context()
	for _, name := range names {
		cluster := &v1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.MemberClusterSpec{
				Accepted: new(true), ClusterID: "id-" + name, JoinMode: v1alpha1.JoinInstall, HeartbeatPeriodSeconds: 1,
				KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: "kubeconfig"},
			},
		}
		require.NoError(h.t, h.client.Create(ctx, cluster))
		h.t.Cleanup(func() { _ = h.client.Delete(context.WithoutCancel(ctx), cluster) })
		testkit.Health(h.t, h.client, name, metav1.ConditionTrue)
		require.NoError(h.t, h.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
		before := cluster.DeepCopy()
		cluster.Status.Install = &v1alpha1.InstallStatus{Hash: "of-an-earlier-one", InstalledAt: new(metav1.Now())}
		meta.SetStatusCondition(&cluster.Status.Conditions,
			metav1.Condition{Type: v1alpha1.ConditionInstalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInstalled})
		require.NoError(h.t, h.client.Status().Patch(ctx, cluster, client.MergeFrom(before)))
		out = append(out, cluster)
	}
	return out
}

// show waits until members have the given reasons in the condition Installed.
func (h *testHub) show(reasons map[string]string) {
	h.t.Helper()
	mustertest.Eventually(h.t, timeout, fmt.Sprint(reasons), func() error {
		var wrong []error
		for name, want := range reasons {
			cluster := &v1alpha1.MemberCluster{}
			if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
				return err
			}
			if got := reasonOf(cluster); got != want {
				wrong = append(wrong, fmt.Errorf("%s is %q: %+v", name, got, cluster.Status.Conditions))
			}
		}
		return errors.Join(wrong...)
	})
}

func (h *testHub) annotate(member, key, value string) {
	h.t.Helper()
	mustertest.Change(h.t, h.client, &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}},
		func(m *v1alpha1.MemberCluster) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value)
		})
}

// TestRollout checks that another revision is installed on one member, and on the others when that is healthy with it.
func TestRollout(t *testing.T) {
	const waits, fails, has = v1alpha1.ReasonInstallWaiting, v1alpha1.ReasonAgentNotHealthy, v1alpha1.ReasonInstalled
	inner := &tried{revision: "2", missing: map[string]string{"roll-a": "its image is not there"},
		installs: map[string]int{}}
	options := install.Options{Installer: inner, Concurrent: 2, HealthyWithin: 8 * time.Second}
	h := startAlone(t, options)
	inner.client = h.client
	members := h.veterans("roll-a", "roll-b", "roll-c", "roll-d", "roll-e")
	connect := func(h *testHub, members ...*v1alpha1.MemberCluster) {
		for _, each := range members {
			h.connect(each, h.plane.Config())
		}
	}
	connect(h, members[0]) // the first turn depends on the connections of the hub
	h.show(map[string]string{"roll-a": v1alpha1.ReasonAgentStarting})
	connect(h, members[1:]...)
	h.show(map[string]string{"roll-a": fails, "roll-b": waits, "roll-c": waits, "roll-d": waits, "roll-e": waits})
	installs, together := inner.seen()
	require.Equal(t, map[string]int{"roll-a": 1}, installs, "the first alone")
	require.Equal(t, 1, together)

	// A hub that restarts has the same state. Requests and new members do not wait.
	h.stop()
	h = startAlone(t, options)
	connect(h, members...)
	h.annotate("roll-e", membership.InstallRequestAnnotation, "now")
	h.show(map[string]string{"roll-e": has})
	fresh := h.veterans("roll-new")[0]
	before := fresh.DeepCopy()
	fresh.Status.Install, fresh.Status.Conditions = nil, nil
	require.NoError(t, h.client.Status().Patch(t.Context(), fresh, client.MergeFrom(before)))
	h.connect(fresh, h.plane.Config())
	h.show(map[string]string{"roll-new": has, "roll-a": fails, "roll-b": waits, "roll-c": waits, "roll-d": waits})
	installs, _ = inner.seen()
	require.Equal(t, map[string]int{"roll-a": 1, "roll-e": 1, "roll-new": 1}, installs)

	inner.mend("roll-a")
	h.annotate("roll-a", "example.com/look", "now") // which the hub does by itself, a minute later
	h.show(map[string]string{"roll-a": has, "roll-b": has, "roll-c": has, "roll-d": has})
	installs, together = inner.seen()
	require.Equal(t, map[string]int{"roll-a": 1, "roll-b": 1, "roll-c": 1, "roll-d": 1, "roll-e": 1, "roll-new": 1},
		installs, "each once")
	require.Equal(t, 2, together, "two at a time")
	// What is thrown away of the agents that were given a credential has gone its way when there is no more to do.
	mustertest.Quiet(t, 3*time.Second, h.requests.writes.Load)
}

// TestRolloutOverCrashes ends a hub at its first write, the next one at its second, and so on: installations in
// progress continue, and no others begin.
func TestRolloutOverCrashes(t *testing.T) {
	const ends = 6
	inner := &tried{revision: "3", installs: map[string]int{}}
	var members []*v1alpha1.MemberCluster
	for at := 1; at <= ends+1; at++ {
		crash := mustertest.NewCrash(at%(ends+1), []mustertest.Loss{mustertest.ResponseLost, mustertest.RequestLost}[at%2])
		h := startAlone(t, install.Options{Installer: inner, Concurrent: 2}, crash.Wrap)
		if inner.client = h.client; members == nil {
			members = h.veterans("crash-a", "crash-b", "crash-c", "crash-d")
		}
		var stops []func()
		for _, each := range members {
			stops = append(stops, h.connect(each, h.plane.Config()))
		}
		if at <= ends {
			select {
			case <-crash.Done():
			case <-time.After(timeout):
				t.Fatalf("the hub has not come to write %d", at)
			}
		} else {
			h.show(map[string]string{
				"crash-a": v1alpha1.ReasonInstalled, "crash-b": v1alpha1.ReasonInstalled, "crash-c": v1alpha1.ReasonInstalled,
				"crash-d": v1alpha1.ReasonInstalled,
			})
		}
		for _, stop := range stops {
			stop()
		}
		h.stop()
	}
	installs, together := inner.seen()
	require.Len(t, installs, len(members), "all have it")
	require.LessOrEqual(t, together, 2)
	for _, each := range members {
		now := &v1alpha1.MemberCluster{}
		require.NoError(t, inner.client.Get(t.Context(), client.ObjectKeyFromObject(each), now))
		require.NotEqual(t, each.Status.Install.Hash, now.Status.Install.Hash)
	}
}
