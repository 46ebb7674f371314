package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestAgent_ZeroOptions runs the agent like its users: in a manager, with Secrets and the default options, from the
// installation to the join and the leave.
func TestAgent_ZeroOptions(t *testing.T) {
	h := newFakeHub(t, plane.ForTest(t), "zero").serve()
	ctx := t.Context()
	h.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: DefaultNamespace}})
	data, err := h.bootstrap.Marshal()
	require.NoError(t, err)
	h.ensure(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: DefaultBootstrapSecret},
		Data:       map[string][]byte{registration.BootstrapKey: data},
	})
	home, onMember := h.permitted("zero-options"), &wire{}
	onMember.config(home)
	mgr, err := manager.New(home, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	w, p := &wire{}, &phases{}
	require.NoError(t, SetupWithManager(mgr, Options{Version: "v1.2.3", HubConfig: w.config, OnPhase: p.show}))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- mgr.Start(running) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()

	eventually(t, "the agent never joins", h.joined)
	m := h.membership()
	require.Equal(t, "v1.2.3", m.Status.Version.Agent)
	require.NotEmpty(t, m.Status.Version.Kubernetes)
	require.Equal(t, "8", m.Status.Resources.Allocatable.Cpu().String())
	require.Equal(t, "8", m.Status.Resources.Available.Cpu().String())
	var names []string
	for _, property := range m.Status.Properties {
		names = append(names, property.Name)
	}
	require.Equal(t, []string{PropertyKubeSystemUID, PropertyKubernetesVersion, PropertyNodeCount}, names)
	for _, kind := range []string{v1alpha1.ConditionJoined, v1alpha1.ConditionPropertiesCollected,
		v1alpha1.ConditionCredentialValid} {
		require.True(t, meta.IsStatusConditionTrue(m.Status.Conditions, kind), kind)
	}
	require.True(t, meta.IsStatusConditionTrue(m.Status.Agents[0].Conditions, v1alpha1.ConditionHealthy))
	require.Nil(t, m.Status.Agents[0].LastHeartbeat, "only the hub sets lastHeartbeat")

	// The requests of the join to the hub.
	eventually(t, "no heartbeat", func() bool { return w.has("POST leases") })
	require.NoError(t, h.c.Get(ctx, client.ObjectKey{Namespace: h.memberNamespace(), Name: membership.LeaseName},
		&coordinationv1.Lease{}))
	got := w.take()
	for kind, want := range map[string]int{"POST joinrequests": 1, "POST leases": 1, "PUT self/status": 1,
		"WATCH memberships": 1} {
		require.Equal(t, want, got[kind], "%s of %v", kind, got)
	}

	var kept corev1.Secret
	published := func() agentstate.State {
		require.NoError(t, h.c.Get(ctx, client.ObjectKey{Namespace: DefaultNamespace, Name: DefaultStoreSecret}, &kept))
		state, err := agentstate.Parse(kept.Annotations[agentstate.Annotation])
		require.NoError(t, err)
		return state
	}
	eventually(t, "the published state is not Joined",
		func() bool { return published().State == lifecycle.Joined })
	require.Equal(t, h.bootstrap.Server, published().Hub)
	require.Equal(t, agentstate.Fingerprint(h.bootstrap), published().Bootstrap)
	got = onMember.take()
	require.Equal(t, 1, got["POST secrets"], "%v", got)
	require.Equal(t, 3, got["PUT muster-agent"],
		"want two writes of the record and one of the published state: %v",
		got)
	h.requireHeartbeats()
	got = onMember.take()
	require.Zero(t, got["PUT muster-agent"], "an agent in steady state writes nothing: %v", got)
	h.change(func(s *v1alpha1.MembershipSpec) { s.State, s.Rejoin, s.Clean = v1alpha1.StateLeave, false, true })
	eventually(t, "the agent does not complete the leave", func() bool { return p.last().Done })
	require.True(t, h.clean())
	for _, name := range []string{DefaultStoreSecret, DefaultBootstrapSecret} {
		err := h.c.Get(ctx, client.ObjectKey{Namespace: DefaultNamespace, Name: name}, &kept)
		require.True(t, apierrors.IsNotFound(err), "Secret %s is left: %v", name, err)
	}
	var reported corev1.EventList
	require.NoError(t, h.c.List(ctx, &reported, client.InNamespace(DefaultNamespace)))
	reasons := map[string]bool{}
	for i := range reported.Items {
		reasons[reported.Items[i].Reason] = true
	}
	require.Equal(t, map[string]bool{"Joined": true, "Leaving": true, "Left": true}, reasons)
	select {
	case err := <-ended:
		t.Fatalf("the manager ended with its agent: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}

// permitted returns a user with the permissions of the folder rbac.
func (h *fakeHub) permitted(user string) *rest.Config {
	h.t.Helper()
	file, err := os.ReadFile("rbac/role.yaml")
	require.NoError(h.t, err)
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	for document := range strings.SplitSeq(string(file), "\n---\n") {
		if strings.Contains(document, "kind: ClusterRole\n") {
			role := &rbacv1.ClusterRole{}
			require.NoError(h.t, yaml.Unmarshal([]byte(document), role))
			role.Name += "-" + user
			h.ensure(role)
			h.ensure(&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: subject,
			})
			continue
		}
		role := &rbacv1.Role{}
		require.NoError(h.t, yaml.Unmarshal([]byte(document), role))
		h.ensure(role)
		h.ensure(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, Subjects: subject,
		})
	}
	return plane.ForTest(h.t).User(user)
}

// TestSteadyState checks that an agent in steady state sends only heartbeats, and writes a change once.
func TestSteadyState(t *testing.T) { testkit.Virtual(t, testSteadyState) }

func testSteadyState(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "steady").serve()
	h.ensure(node("node-0", corev1.ConditionTrue, list("cpu", "8")))
	w := &wire{}
	r := h.run(Options{HubConfig: w.config, ResourceInterval: 200 * time.Millisecond,
		ProbeInterval: 100 * time.Millisecond, ReportAPIs: true})
	requirePhase(t, r, lifecycle.Joined)
	apps := func(api v1alpha1.ServedAPIs) bool { return api.GroupVersion == "apps/v1" }
	eventually(t, "the agent does not report the served APIs",
		func() bool { return slices.ContainsFunc(h.membership().Status.APIs, apps) })
	apis := h.membership().Status.APIs
	require.Contains(t, apis[slices.IndexFunc(apis, apps)].Kinds, "Deployment")
	eventually(t, "no heartbeat", func() bool { return w.take()["PUT leases/heartbeat"] > 0 })
	const periods = 5
	<-time.After(periods * time.Second)
	got := w.take()
	beats := got["PUT leases/heartbeat"]
	require.InDelta(t, periods, beats, 1)
	require.Equal(t, map[string]int{"PUT leases/heartbeat": beats}, got)

	// A change is written once.
	h.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "steady-pods"}})
	h.ensure(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "steady-pods", Name: "p"},
		Spec: corev1.PodSpec{NodeName: "node-0",
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: container("cpu", "1").Resources}}},
	})
	eventually(t, "the request of the pod is not subtracted",
		func() bool { return h.membership().Status.Resources.Available.Cpu().String() == "7" })
	<-time.After(time.Second)
	require.Equal(t, 1, w.take()["PUT self/status"])
	require.NoError(t, h.c.Delete(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "steady-pods", Name: "p"}}, client.GracePeriodSeconds(0)))
}

// TestAgent_KilledAfterEachEffect makes an agent join and leave, and kills it after its first effect that is visible
// from outside (a save, a response to a request), then another agent after its second effect, and so on. The next
// agent must complete the join and the leave, with the same request.
func TestAgent_KilledAfterEachEffect(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]registration.Method{"token": token.Method{}, "csr": csr.Method{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kill, killed := 0, true
			for killed {
				kill++
				synctest.Test(t, func(t *testing.T) {
					killed = joinAndLeaveKilled(t, fmt.Sprintf("killed-%s-%d", name, kill), method, kill)
				})
			}
			require.Greater(t, kill, 10, "the number of kills is too small")
		})
	}
}

// joinAndLeaveKilled reports whether the agent was killed before it was done.
func joinAndLeaveKilled(t *testing.T, name string, method registration.Method, kill int) (killed bool) {
	h := newFakeHub(t, newMemory(t), name).serve()
	store, w, bootstrap, cleaned := &memory{}, &wire{}, &deletableBootstrap{bootstrap: h.bootstrap}, 0
	o := Options{Bootstrap: bootstrap, Clock: newFastClock(), Method: method, Store: store, HubConfig: w.config,
		Cleaners: []membership.LeaveGate{
			membership.GateFunc("works", func(_ context.Context, m membership.Member) ([]string, error) {
				require.Equal(t, int32(77), m.Leave.DeadlineSeconds, "the last known leave policy applies")
				if cleaned++; cleaned < 2 {
					return []string{"work/a"}, nil
				}
				return nil, nil
			}),
		}}
	var seen atomic.Int64
	hit, first := make(chan string, 1), make(chan *running, 1)
	count := func(what string) {
		// The number of heartbeats varies. After the deletion of the record, the agent is done.
		if what != "PUT leases/heartbeat" && what != "delete" && seen.Add(1) == int64(kill) {
			(<-first).cancel() // before the next effect
			hit <- what
		}
	}
	store.after, w.after = count, count
	r := h.run(o)
	first <- r
	var left bool
	deadline := time.After(timeLimit)
	for {
		select {
		case what := <-hit:
			t.Logf("killed after %d: %s", kill, what)
			r.stop()
			r, killed = h.run(o), true
		case <-r.done:
			if len(hit) > 0 {
				continue // the agent was killed
			}
			require.True(t, left && h.clean(), "the agent has ended without a requested leave")
			require.Empty(t, store.record)
			require.True(t, bootstrap.deregistered.Load(), "the bootstrap credential is deleted")
			var requests v1alpha1.JoinRequestList
			require.NoError(t, h.c.List(t.Context(), &requests, client.InNamespace(h.name)))
			require.Len(t, requests.Items, 1, "each agent continues with the request of the former one")
			return killed
		case <-time.After(interval):
			if !left && h.joined() {
				h.change(func(s *v1alpha1.MembershipSpec) { s.State, s.Rejoin, s.Clean = v1alpha1.StateLeave, false, true })
				left = true
			}
		case <-deadline:
			t.Fatal("the agent makes no progress: ", r.last())
		}
	}
}

// TestMemberDoesNotRespond checks an agent whose member does not respond, with a collector that ignores its deadline.
func TestMemberDoesNotRespond(t *testing.T) { testkit.Virtual(t, testMemberDoesNotRespond) }

func testMemberDoesNotRespond(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "hanging").serve()
	hang := make(chan struct{})
	defer close(hang)
	w := &wire{}
	r := h.run(Options{ClusterID: "hanging", HubConfig: w.config, Member: unresponsive(t), Collectors: []PropertyCollector{
		CollectorFunc("stuck", func(context.Context) ([]v1alpha1.Property, error) { <-hang; return nil, nil }),
		CollectorFunc("broken", func(context.Context) ([]v1alpha1.Property, error) { return nil, errors.New("no") }),
		CollectorFunc("fine", func(context.Context) ([]v1alpha1.Property, error) {
			return []v1alpha1.Property{{Name: "example.com/fine", Value: "yes"}}, nil
		}),
	}})
	start := time.Now()
	requirePhase(t, r, lifecycle.Joined)
	require.Less(t, time.Since(start), firstLook+5*time.Second, "a join does not wait for a member that does not respond")
	want := []v1alpha1.Property{{Name: "example.com/fine", Value: "yes"}}
	if diff := cmp.Diff(want, h.membership().Status.Properties); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	w.take()
	<-time.After(3 * time.Second)
	require.InDelta(t, 3, w.take()["PUT leases/heartbeat"], 1, "the heartbeat waits for no other request")
	eventually(t, "the failed collectors are not reported", func() bool {
		c := meta.FindStatusCondition(h.membership().Status.Conditions, v1alpha1.ConditionPropertiesCollected)
		return c.Reason == v1alpha1.ReasonCollectorFailed &&
			c.Message == "Collectors that failed or took too long, see the agent's log: broken, cluster-properties, "+
				"kube-system, stuck, version."
	})
	agent := h.membership().Status.Agents[0]
	require.True(t, meta.IsStatusConditionFalse(agent.Conditions, v1alpha1.ConditionHealthy), "%v", agent)
}
