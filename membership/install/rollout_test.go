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

// fakeInstaller is an installer that installs nothing. The test sets the result of its Missing.
type fakeInstaller struct {
	revision string
	client   client.Client

	mu         sync.Mutex
	missing    map[string]string
	installs   map[string]int
	concurrent int // the maximum of installations in progress when an installation begins
}

func (i *fakeInstaller) Revision() string { return i.revision }

func (i *fakeInstaller) Install(ctx context.Context, target install.Target) error {
	all := &v1alpha1.MemberClusterList{}
	if err := i.client.List(ctx, all); err != nil {
		return err
	}
	inProgress := 0
	for at := range all.Items {
		switch reasonOf(&all.Items[at]) {
		case v1alpha1.ReasonInstalling, v1alpha1.ReasonAgentStarting:
			inProgress++
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installs[target.Cluster.Name]++
	i.concurrent = max(i.concurrent, inProgress)
	return nil
}

func (i *fakeInstaller) Missing(_ context.Context, target install.Target) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.missing[target.Cluster.Name], nil
}

func (i *fakeInstaller) repair(member string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.missing, member)
}

func (i *fakeInstaller) observed() (installs map[string]int, concurrent int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.installs), i.concurrent
}

func reasonOf(cluster *v1alpha1.MemberCluster) string {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionInstalled); condition != nil {
		return condition.Reason
	}
	return ""
}

// startInstaller starts a hub that only installs agents: the test sets the health of the members.
func startInstaller(t *testing.T, p apiServer, options install.Options, over ...transport.WrapperFunc) *testHub {
	t.Helper()
	h := &testHub{t: t, plane: p, client: mustertest.Client(t, p.Config(), newScheme(), crds.Install),
		requests: &counter{}}
	address(p, &options)
	tokens := jointoken.Options{Server: options.Server, CA: options.CA}
	config := h.requests.wrap(h.user("muster-hub", "../hub/rbac/role.yaml", "rbac/role.yaml"))
	for _, each := range over {
		config.Wrap(each)
	}
	h.stop = h.start(config,
		func(mgr manager.Manager) (err error) {
			h.runner, err = install.New(mgr, options)
			return err
		}, func(mgr manager.Manager) error { return jointoken.SetupWithManager(mgr, tokens) })
	return h
}

// installedMembers creates members with a healthy agent that was installed by an earlier revision, and deletes them
// at the end of the test.
func (h *testHub) installedMembers(names ...string) (out []*v1alpha1.MemberCluster) {
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

// requireReasons waits until members have the given reasons in the condition Installed.
func (h *testHub) requireReasons(reasons map[string]string) {
	h.t.Helper()
	mustertest.Eventually(h.t, timeout, fmt.Sprint(reasons), func() error {
		var wrong []error
		for name, want := range reasons {
			cluster := &v1alpha1.MemberCluster{}
			if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
				return err
			}
			if got := reasonOf(cluster); got != want {
				wrong = append(wrong,
					fmt.Errorf("member %s: want another reason, got %q: %+v", name, got, cluster.Status.Conditions))
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

// TestRollout checks that another revision is installed on one member first, and on the others when the first is
// healthy.
func TestRollout(t *testing.T) {
	testkit.Virtual(t, testRollout)
}

func testRollout(t *testing.T) {
	const waiting, unhealthy, installed = v1alpha1.ReasonInstallWaiting, v1alpha1.ReasonAgentNotHealthy,
		v1alpha1.ReasonInstalled
	inner := &fakeInstaller{revision: "2", missing: map[string]string{"roll-a": "its image is not there"},
		installs: map[string]int{}}
	options := install.Options{Installer: inner, Concurrent: 2, HealthyWithin: 8 * time.Second}
	h := startInstaller(t, newMemory(t), options)
	inner.client = h.client
	members := h.installedMembers("roll-a", "roll-b", "roll-c", "roll-d", "roll-e")
	connect := func(h *testHub, members ...*v1alpha1.MemberCluster) {
		for _, each := range members {
			h.connect(each, h.plane.Config())
		}
	}
	connect(h, members[0]) // the first permit depends on the connections of the hub
	h.requireReasons(map[string]string{"roll-a": v1alpha1.ReasonAgentStarting})
	connect(h, members[1:]...)
	h.requireReasons(map[string]string{"roll-a": unhealthy, "roll-b": waiting, "roll-c": waiting, "roll-d": waiting,
		"roll-e": waiting})
	installs, concurrent := inner.observed()
	require.Equal(t, map[string]int{"roll-a": 1}, installs, "only the first member is updated")
	require.Equal(t, 1, concurrent)

	// A hub that restarts has the same state. Requests and new members do not wait.
	h.stop()
	h = startInstaller(t, h.plane, options)
	connect(h, members...)
	h.annotate("roll-e", membership.InstallRequestAnnotation, "now")
	h.requireReasons(map[string]string{"roll-e": installed})
	fresh := h.installedMembers("roll-new")[0]
	before := fresh.DeepCopy()
	fresh.Status.Install, fresh.Status.Conditions = nil, nil
	require.NoError(t, h.client.Status().Patch(t.Context(), fresh, client.MergeFrom(before)))
	h.connect(fresh, h.plane.Config())
	h.requireReasons(map[string]string{"roll-new": installed, "roll-a": unhealthy, "roll-b": waiting, "roll-c": waiting,
		"roll-d": waiting})
	installs, _ = inner.observed()
	require.Equal(t, map[string]int{"roll-a": 1, "roll-e": 1, "roll-new": 1}, installs)

	inner.repair("roll-a")
	h.annotate("roll-a", "example.com/look", "now") // the hub reconciles without this change a minute later
	h.requireReasons(map[string]string{"roll-a": installed, "roll-b": installed, "roll-c": installed, "roll-d": installed})
	installs, concurrent = inner.observed()
	require.Equal(t, map[string]int{"roll-a": 1, "roll-b": 1, "roll-c": 1, "roll-d": 1, "roll-e": 1, "roll-new": 1},
		installs, "each member is updated once")
	require.Equal(t, 2, concurrent, "want two installations at a time")
	// The tokens of agents with a credential are deleted when the hub is idle.
	mustertest.Quiet(t, 3*time.Second, h.requests.writes.Load)
}

// TestRolloutOverCrashes ends a hub at its first write, the next one at its second, and so on: installations in
// progress continue, and no others begin.
func TestRolloutOverCrashes(t *testing.T) {
	testkit.Virtual(t, testRolloutOverCrashes)
}

func testRolloutOverCrashes(t *testing.T) {
	const ends = 6
	inner := &fakeInstaller{revision: "3", installs: map[string]int{}}
	p := newMemory(t)
	var members []*v1alpha1.MemberCluster
	for at := 1; at <= ends+1; at++ {
		crash := mustertest.NewCrash(at%(ends+1), []mustertest.Loss{mustertest.ResponseLost, mustertest.RequestLost}[at%2])
		h := startInstaller(t, p, install.Options{Installer: inner, Concurrent: 2}, crash.Wrap)
		if inner.client = h.client; members == nil {
			members = h.installedMembers("crash-a", "crash-b", "crash-c", "crash-d")
		}
		var stops []func()
		for _, each := range members {
			stops = append(stops, h.connect(each, h.plane.Config()))
		}
		if at <= ends {
			select {
			case <-crash.Done():
			case <-time.After(timeout):
				t.Fatalf("the hub has not reached write %d", at)
			}
		} else {
			h.requireReasons(map[string]string{
				"crash-a": v1alpha1.ReasonInstalled, "crash-b": v1alpha1.ReasonInstalled, "crash-c": v1alpha1.ReasonInstalled,
				"crash-d": v1alpha1.ReasonInstalled,
			})
		}
		for _, stop := range stops {
			stop()
		}
		h.stop()
	}
	installs, concurrent := inner.observed()
	require.Len(t, installs, len(members), "all members are updated")
	require.LessOrEqual(t, concurrent, 2)
	for _, each := range members {
		now := &v1alpha1.MemberCluster{}
		require.NoError(t, inner.client.Get(t.Context(), client.ObjectKeyFromObject(each), now))
		require.NotEqual(t, each.Status.Install.Hash, now.Status.Install.Hash)
	}
}
