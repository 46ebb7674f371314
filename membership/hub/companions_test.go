package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/identity"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// answeringCompanion is a companion that works like the agent of Works: with a cache of the objects in the member's
// namespace on the hub. It creates a ConfigMap "answer-x" for each ConfigMap "ask-x", and deletes all answers if
// there is one with the name "take-back".
type answeringCompanion struct {
	t       testing.TB
	running atomic.Int64
	started atomic.Int64
}

func (*answeringCompanion) Name() string { return "answering" }

func (a *answeringCompanion) Run(ctx context.Context, hub agent.Hub) error {
	a.started.Add(1)
	a.running.Add(1)
	defer a.running.Add(-1)
	c, err := client.New(hub.Config, client.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	if err := c.List(ctx, &corev1.ConfigMapList{}); !apierrors.IsForbidden(err) {
		a.t.Errorf("the agent may list objects of other members: %v", err)
	}
	seen, err := cache.New(hub.Config, cache.Options{
		Scheme: newScheme(), DefaultNamespaces: map[string]cache.Config{hub.Member.Namespace: {}},
	})
	if err != nil {
		return err
	}
	informer, err := seen.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	act := func(object any) {
		created, ok := object.(*corev1.ConfigMap)
		if !ok {
			return
		}
		var err error
		switch x, isQuestion := strings.CutPrefix(created.Name, "ask-"); {
		case isQuestion:
			err = client.IgnoreAlreadyExists(c.Create(ctx, answer(created.Namespace, x)))
		case created.Name == "take-back":
			err = c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(created.Namespace),
				client.MatchingLabels{"answer": "yes"})
		}
		if err != nil && ctx.Err() == nil {
			a.t.Errorf("acting on %s: %v", created.Name, err)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: act}); err != nil {
		return err
	}
	err = seen.Start(ctx)
	pause(500 * time.Millisecond) // clean-up of the companion
	return err
}

func answer(namespace, x string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "answer-" + x,
		Labels: map[string]string{"answer": "yes"}}}
}

// requireAnswer creates a request for the companion of a member, and waits for the answer.
func (h *testHub) requireAnswer(member, x string) {
	h.T.Helper()
	namespace := "member-" + member
	h.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ask-" + x}})
	h.Eventually("the companion answers "+x, func() error {
		return h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(answer(namespace, x)), &corev1.ConfigMap{})
	})
}

// TestCompanions checks that companions have the agent's access to the hub while the cluster is a member: during
// renewals, not after a restart of the agent, and during a leave until the gates of the hub are open.
func TestCompanions(t *testing.T) { testkit.Virtual(t, testCompanions) }

func testCompanions(t *testing.T) {
	var h *testHub
	works := membership.GateFunc("works", func(ctx context.Context, m membership.Member) ([]string, error) {
		request := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "take-back"}}
		var left corev1.ConfigMapList
		if err := errors.Join(
			client.IgnoreAlreadyExists(h.Client.Create(ctx, request)),
			h.Client.List(ctx, &left, client.InNamespace(m.Namespace), client.MatchingLabels{"answer": "yes"}),
		); err != nil {
			return nil, err
		}
		var remaining []string
		for _, each := range left.Items {
			remaining = append(remaining, each.Name)
		}
		return remaining, nil
	})
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"list", "watch", "create", "deletecollection"},
	}}
	h = startHub(t, newMemory(t), hub.Options{Gates: []membership.LeaveGate{works}, AgentRules: rules})
	// A hub cannot grant permissions that it does not have.
	meta := metav1.ObjectMeta{Name: "rules-of-companions"}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "muster-hub"}},
		},
	} {
		h.Create(object)
		t.Cleanup(func() { _ = h.Client.Delete(context.Background(), object) })
	}
	bootstrap := h.token("companions", v1alpha1.JoinTokenSpec{AutoAccept: true})
	for _, test := range []struct {
		method   registration.Method
		lifetime time.Duration
	}{
		{token.Method{}, token.DefaultLifetime},
		{csr.Method{}, csr.DefaultLifetime},
		{identity.Method{}, 0},
	} {
		name := "beside-" + strings.ToLower(string(test.method.Type()))
		testkit.Step(t, name, func() {
			companion, clock := &answeringCompanion{t: t}, &mustertest.Clock{}
			var panics, cleaned atomic.Int64
			var rejected atomic.Bool
			options := agent.Options{Name: name, Method: test.method, Clock: clock}
			options.OnPhase = func(step lifecycle.AgentStep) { rejected.Store(step.Phase == lifecycle.Rejected) }
			options.Companions = []agent.Companion{companion,
				agent.CompanionFunc("panicking", func(context.Context, agent.Hub) error {
					panics.Add(1)
					panic("on purpose")
				})}
			options.Cleaners = []membership.LeaveGate{membership.GateFunc("works",
				func(context.Context, membership.Member) ([]string, error) {
					if n := companion.running.Load(); n > 0 {
						t.Errorf("%d companions run concurrently with a cleaner", n)
					}
					cleaned.Add(1)
					return nil, nil
				})}
			cluster := &v1alpha1.MemberCluster{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha1.MemberClusterSpec{Accepted: new(true), ClusterID: "id-" + name, HeartbeatPeriodSeconds: 1},
			}
			if test.lifetime == 0 {
				user := name + "-user"
				own := h.withCertificate(user).TLSClientConfig
				options.HubConfig = func(config *rest.Config) { config.TLSClientConfig = own }
				cluster.Spec.Identity = &rbacv1.Subject{Kind: "User", Name: user}
				cluster.Spec.Credential = v1alpha1.CredentialIdentity
			}
			h.Create(cluster)
			a := h.newAgent(bootstrap, options).start()
			h.untilPhase(name, v1alpha1.PhaseJoined)
			h.requireAnswer(name, "joined")

			for i := range 2 {
				if test.lifetime == 0 {
					break // an existing identity is not renewed
				}
				clock.Move(test.lifetime * 79 / 100)
				before := h.renewal(name)
				h.Eventually("the credential is renewed and in use", func() error {
					self := h.membership(name)
					return orError(h.renewal(name) != before && self.Status.Renewal == nil, "renewal request %v", self.Status.Renewal)
				})
				h.requireAnswer(name, fmt.Sprintf("renewed-%d", i))
			}
			require.EqualValues(t, 1, companion.started.Load(), "the companion is not restarted")

			h.Eventually("the panicking companion is called again",
				func() error { return orError(panics.Load() > 2, "%d panics", panics.Load()) })
			for range 2 {
				before := h.leaseVersion(name)
				h.Eventually("the agent sends heartbeats",
					func() error { return orError(h.leaseVersion(name) != before, "the Lease is unchanged") })
			}

			a.stop()
			require.Zero(t, companion.running.Load(), "a companion outlives its agent")
			a.start()
			h.requireAnswer(name, "restarted")
			require.EqualValues(t, 2, companion.started.Load())

			h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(false) })
			h.Eventually("the agent is rejected", func() error { return orError(rejected.Load(), "the agent is not rejected") })
			h.Eventually("the companion has ended",
				func() error { return orError(companion.running.Load() == 0, "the companion runs") })
			h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
			h.requireAnswer(name, "accepted-again")
			require.EqualValues(t, 3, companion.started.Load())
			require.Zero(t, cleaned.Load())

			h.remove(name)
			require.Positive(t, cleaned.Load())
			require.Zero(t, companion.running.Load())
			require.EqualValues(t, 3, companion.started.Load())
			a.stop()
		})
	}
}

// renewal returns the ID of the answer to the member's last renewal.
func (h *testHub) renewal(name string) string {
	h.T.Helper()
	if answer := h.membership(name).Spec.Renewal; answer != nil && answer.Credential != nil {
		return answer.ID
	}
	return ""
}

// leaseVersion returns the resource version of the member's Lease.
func (h *testHub) leaseVersion(name string) string {
	h.T.Helper()
	var lease coordinationv1.Lease
	require.NoError(h.T, h.Client.Get(h.T.Context(),
		client.ObjectKey{Namespace: "member-" + name, Name: membership.LeaseName}, &lease))
	return lease.ResourceVersion
}
