package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// answerRenewal waits for a renewal with another ID than before and answers it.
func (h *fakeHub) answerRenewal(before string, answer func(*v1alpha1.Renewal) *v1alpha1.RenewalAnswer) string {
	h.t.Helper()
	var renewal *v1alpha1.Renewal
	eventually(h.t, "the agent requests no renewal", func() bool {
		renewal = h.membership().Status.Renewal
		return renewal != nil && renewal.ID != before
	})
	h.change(func(s *v1alpha1.MembershipSpec) { s.Renewal = answer(renewal) })
	return renewal.ID
}

func (h *fakeHub) issueRenewal(claim string) func(*v1alpha1.Renewal) *v1alpha1.RenewalAnswer {
	return func(renewal *v1alpha1.Renewal) *v1alpha1.RenewalAnswer {
		credential, err := h.issue(h.t.Context(), h.member(claim), renewal.Request)
		require.NoError(h.t, err)
		return &v1alpha1.RenewalAnswer{ID: renewal.ID, Credential: &credential}
	}
}

// touch changes the Membership, so that the agent runs another step.
func (h *fakeHub) touch() {
	h.change(func(s *v1alpha1.MembershipSpec) { s.Leave.DeadlineSeconds++ })
}

// requireHeartbeats waits for two more heartbeats.
func (h *fakeHub) requireHeartbeats() {
	h.t.Helper()
	version := func() string {
		lease := &coordinationv1.Lease{}
		err := h.c.Get(h.t.Context(), client.ObjectKey{Namespace: h.memberNamespace(), Name: membership.LeaseName}, lease)
		require.NoError(h.t, client.IgnoreNotFound(err))
		return lease.ResourceVersion
	}
	for range 2 {
		before := version()
		eventually(h.t, "the agent sends no heartbeat", func() bool { return version() != before })
	}
}

// TestRenewal checks the renewal by an agent whose clock is wrong by an hour: its first request is refused, the next
// one is answered, without a restart.
func TestRenewal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method registration.Method
		off    time.Duration
	}{"token": {token.Method{}, time.Hour}, "csr": {csr.Method{}, -time.Hour}} {
		renewal := func(t *testing.T) {
			h := newFakeHub(t, newMemory(t), "renew-"+name).serve()
			clock, store, w := &shifted{by: tc.off}, &memory{}, &wire{}
			r := h.run(Options{Method: tc.method, Clock: clock, Store: store, HubConfig: w.config})
			requirePhase(t, r, lifecycle.Joined)
			first := store.parsed(t)
			lifetime := first.Member.Credential.Lifetime
			require.Greater(t, lifetime, 9*time.Minute, "%v", first.Member.Credential)
			claim, err := registration.ParseClaimKey(first.ClaimKey)
			require.NoError(t, err)

			// The refusal of the hub is reported, and the renewal is requested again later.
			clock.shift(lifetime * 3 / 4)
			h.touch()
			id := h.answerRenewal("", func(renewal *v1alpha1.Renewal) *v1alpha1.RenewalAnswer {
				return &v1alpha1.RenewalAnswer{ID: renewal.ID, Refused: "Not today."}
			})
			eventually(t, "the agent does not report the refusal", func() bool {
				c := meta.FindStatusCondition(h.membership().Status.Conditions, v1alpha1.ConditionCredentialValid)
				return c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonRenewalRefused && c.Message == "Not today."
			})
			h.touch()
			h.requireHeartbeats()
			require.Equal(t, id, h.membership().Status.Renewal.ID, "the agent requests another renewal immediately")
			clock.shift(max(lifetime/10, time.Minute))
			h.touch()

			h.answerRenewal(id, h.issueRenewal(claim.Fingerprint()))
			eventually(t, "the agent does not adopt the new credential", func() bool { return store.parsed(t).Renewal == nil })
			second := store.parsed(t)
			require.False(t, second.Member.Credential.same(first.Member.Credential.material()))
			require.False(t, second.Member.Credential.Since.Before(first.Member.Credential.Since.Add(lifetime*3/4)),
				"the lifetime of the new credential starts at its issue")
			eventually(t, "the renewal is not removed from the status", func() bool {
				m := h.membership()
				return m.Status.Renewal == nil && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionCredentialValid)
			})
			h.requireHeartbeats()
			h.touch()
			eventually(t, "the agent does not observe changes of the Membership", func() bool {
				return store.parsed(t).Leave.DeadlineSeconds == h.membership().Spec.Leave.DeadlineSeconds
			})
			require.Equal(t, lifecycle.Joined, r.last().Phase)
			require.Equal(t, 1, w.take()["POST joinrequests"], "the agent sent another JoinRequest")
		}
		t.Run(name, func(t *testing.T) { testkit.Virtual(t, renewal) })
	}
}

// TestPermissionsRevoked revokes the agent's permissions, which does not end its watch, and restores them.
func TestPermissionsRevoked(t *testing.T) { testkit.Virtual(t, testPermissionsRevoked) }

func testPermissionsRevoked(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "withdrawn").serve()
	cleaned := make(chan membership.Member, 100)
	r := h.run(Options{Clock: newFastClock(),
		Cleaners: []membership.LeaveGate{membership.GateFunc("works",
			func(_ context.Context, m membership.Member) ([]string, error) {
				cleaned <- m
				return nil, nil
			})}})
	requirePhase(t, r, lifecycle.Joined)
	binding := h.binding()
	require.NoError(t, h.c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	subjects := binding.Subjects
	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerDenied, nil) })
	h.deleteRequests()
	require.NoError(t, h.c.Delete(t.Context(), binding))
	requirePhase(t, r, lifecycle.Rejected)
	eventually(t, "the agent does not report the answer to its JoinRequest", func() bool {
		return strings.Contains(r.last().Message, "refuses the agent") && strings.HasSuffix(r.last().Message, "(By hand.)")
	})
	require.Empty(t, cleaned, "a refusal is no proof of a removal")

	h.ensure(h.binding(subjects...))
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()

	// Now the hub answers the JoinRequest with Deregistered.
	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerDeregistered, nil) })
	h.deleteRequests()
	require.NoError(t, h.c.Delete(t.Context(), h.binding()))
	r.ended()
	require.True(t, r.last().Done)
	m := <-cleaned
	require.Equal(t, v1alpha1.OrphanResources, m.Leave.Resources, "the last known leave policy applies")
	require.Equal(t, "uid-withdrawn", string(m.UID))
}

// TestRefusal_Temporary checks an agent whose hub refuses all users for a while, like an API server that was started
// recently.
func TestRefusal_Temporary(t *testing.T) { testkit.Virtual(t, testRefusalTemporary) }

func testRefusalTemporary(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "moment").serve()
	hub, w := &faultyHub{}, &wire{}
	r := h.run(Options{HubConfig: func(c *rest.Config) { hub.config(c); w.config(c) }})
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	hub.refuses.Store(true)
	for _, resource := range []string{membership.LeaseName, memberships} {
		eventually(t, "no request is refused: "+resource,
			func() bool { _, found := hub.refused.Load(resource); return found })
	}
	<-time.After(2 * time.Second)
	require.Equal(t, lifecycle.Joined, r.last().Phase)
	require.Contains(t, r.last().Message, "The hub refuses the agent's credential. The agent retries. (")
	hub.refuses.Store(false)
	h.requireHeartbeats()
	eventually(t, "the agent does not observe that the hub accepts its credential again", func() bool {
		return r.last().Message == "The member has joined the hub."
	})
	require.NotContains(t, r.seen(), lifecycle.Rejected)
	require.Equal(t, 1, w.take()["POST joinrequests"], "the agent sent another JoinRequest")

	hub.refuses.Store(true)
	requirePhase(t, r, lifecycle.Rejected)
}

func (h *fakeHub) deleteRequests() {
	h.t.Helper()
	require.NoError(h.t, h.c.DeleteAllOf(h.t.Context(), &v1alpha1.JoinRequest{}, client.InNamespace(h.name)))
}

// TestCleaners_CalledOncePerGatePoll checks that a cleaner whose result changes with each call is called once per
// GatePoll.
func TestCleaners_CalledOncePerGatePoll(t *testing.T) {
	testkit.Virtual(t, testCleanersCalledOncePerGatePoll)
}

func testCleanersCalledOncePerGatePoll(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "cleaners").serve()
	w := &wire{}
	var calls atomic.Int64
	r := h.run(Options{HubConfig: w.config, Cleaners: []membership.LeaveGate{
		membership.GateFunc("works", func(context.Context, membership.Member) ([]string, error) {
			return []string{fmt.Sprintf("%d objects", 100_000-calls.Add(1))}, nil
		}),
	}})
	requirePhase(t, r, lifecycle.Joined)
	h.change(func(s *v1alpha1.MembershipSpec) { s.State, s.Rejoin, s.Clean = v1alpha1.StateLeave, false, true })
	eventually(t, "no cleaner is called", func() bool { return calls.Load() > 0 })
	before := calls.Load()
	w.take()
	const polls = 3
	<-time.After(polls * lifecycle.GatePoll)
	require.InDelta(t, polls, calls.Load()-before, 1, "calls of the cleaner")
	require.InDelta(t, polls, w.take()["PUT self/status"], 1, "writes of the progress")

	h.change(func(s *v1alpha1.MembershipSpec) { s.State, s.Clean = v1alpha1.StateJoin, false })
	requirePhase(t, r, lifecycle.Joined)
}

// TestRejoin checks that a member leaves and, if the hub permits it, joins again.
func TestRejoin(t *testing.T) { testkit.Virtual(t, testRejoin) }

func testRejoin(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "rejoin").serve()
	store := &memory{}
	r := h.run(Options{Store: store})
	requirePhase(t, r, lifecycle.Joined)
	first := store.parsed(t).ClaimKey
	h.setAnswer(func(*v1alpha1.JoinRequest) {})
	h.change(func(s *v1alpha1.MembershipSpec) { s.State, s.Clean = v1alpha1.StateLeave, true })
	requirePhase(t, r, lifecycle.Registering)
	require.NoError(t, h.c.Delete(t.Context(), h.membership()))
	h.setAnswer(nil)
	requirePhase(t, r, lifecycle.Joined)
	require.NotEqual(t, first, store.parsed(t).ClaimKey, "a new membership has a new claim")
	h.requireHeartbeats()
}

// wipedStore is a store whose record was deleted, like a Secret, so that the next Save does not find it.
type wipedStore struct {
	memory
	wipe atomic.Bool
}

func (w *wipedStore) Save(ctx context.Context, record []byte) error {
	if w.wipe.CompareAndSwap(true, false) {
		return errors.Join(w.Delete(ctx), errors.New("there is no such Secret"))
	}
	return w.memory.Save(ctx, record)
}

// TestRecord_Deleted checks that an agent whose record was deleted is not registered, and does not act as a member.
func TestRecord_Deleted(t *testing.T) { testkit.Virtual(t, testRecordDeleted) }

func testRecordDeleted(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "lost").serve()
	store, w := &wipedStore{}, &wire{}
	r := h.run(Options{Store: store, HubConfig: w.config})
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerHeld, nil) })
	before := store.parsed(t).ClaimKey
	store.wipe.Store(true)
	h.touch() // causes a write of the record
	requirePhase(t, r, lifecycle.Registering)
	require.NotEqual(t, before, store.parsed(t).ClaimKey)
	eventually(t, "the agent does not send another JoinRequest",
		func() bool { return strings.Contains(r.last().Message, "The JoinRequest is pending") })
	w.take()
	<-time.After(3 * time.Second)
	require.Zero(t, w.take()["PUT leases/heartbeat"], "the agent sends heartbeats without a record of the member")
}

// TestMembershipDeleted deletes the Membership while the agent still has access, which does not prove a removal;
// creates it again; and then answers the JoinRequest with Deregistered.
func TestMembershipDeleted(t *testing.T) { testkit.Virtual(t, testMembershipDeleted) }

func testMembershipDeleted(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "gone").serve()
	var cleaned atomic.Int64
	r := h.run(Options{Clock: newFastClock(),
		Cleaners: []membership.LeaveGate{membership.GateFunc("works",
			func(context.Context, membership.Member) ([]string, error) {
				cleaned.Add(1)
				return nil, nil
			})}})
	requirePhase(t, r, lifecycle.Joined)
	h.setAnswer(func(*v1alpha1.JoinRequest) {})
	h.deleteRequests()
	m := h.membership()
	require.NoError(t, h.c.Delete(t.Context(), m))
	requirePhase(t, r, lifecycle.Rejected)
	h.ensure(&v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}, Spec: m.Spec})
	requirePhase(t, r, lifecycle.Joined)
	eventually(t, "the agent does not report again that it has joined", h.joined)
	require.Zero(t, cleaned.Load(), "the member is cleaned up because the Membership was deleted by mistake")

	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerDeregistered, nil) })
	h.deleteRequests()
	require.NoError(t, h.c.Delete(t.Context(), h.membership()))
	r.ended()
	require.Positive(t, cleaned.Load())
}

// TestMetrics_SeveralAgents checks several agents in one process, each with separate metrics.
func TestMetrics_SeveralAgents(t *testing.T) { testkit.Virtual(t, testMetricsSeveralAgents) }

func testMetricsSeveralAgents(t *testing.T) {
	p := newMemory(t)
	east, west := newFakeHub(t, p, "several-east").serve(), newFakeHub(t, p, "several-west").serve()
	of := func(member string) map[string]float64 {
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(t, err)
		out := map[string]float64{}
		for _, family := range families {
			for _, m := range family.Metric {
				name := family.GetName()
				var matches bool
				for _, label := range m.Label {
					matches = matches || label.GetName() == "member" && label.GetValue() == member
					if label.GetName() == "phase" {
						name += " " + label.GetValue()
					}
				}
				if matches {
					out[name] = m.GetGauge().GetValue()
				}
			}
		}
		return out
	}
	r := east.run(Options{})
	requirePhase(t, r, lifecycle.Joined)
	requirePhase(t, west.run(Options{}), lifecycle.Joined)
	now := float64(time.Now().Unix())
	for _, member := range []string{east.name, west.name} {
		eventually(t, "no metrics of "+member, func() bool {
			m := of(member)
			return m["muster_agent_phase Joined"] == 1 && m["muster_agent_last_heartbeat_timestamp_seconds"] > now-60 &&
				m["muster_agent_credential_expiration_timestamp_seconds"] > now+500 && len(m) == 4
		})
	}
	r.stop()
	require.Empty(t, of(east.name), "an agent that has ended has no metrics")
	require.NotEmpty(t, of(west.name))
}

// TestHeartbeatPeriod_Changed checks a change of the heartbeat period.
func TestHeartbeatPeriod_Changed(t *testing.T) { testkit.Virtual(t, testHeartbeatPeriodChanged) }

func testHeartbeatPeriodChanged(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "period")
	h.period = 600
	r := h.serve().run(Options{})
	requirePhase(t, r, lifecycle.Joined)
	eventually(t, "the agent sends no heartbeat", func() bool {
		return h.c.Get(t.Context(), client.ObjectKey{Namespace: h.memberNamespace(), Name: membership.LeaseName},
			&coordinationv1.Lease{}) == nil
	})
	h.change(func(s *v1alpha1.MembershipSpec) { s.HeartbeatPeriodSeconds = 1 })
	h.requireHeartbeats()
}

// TestPartition disconnects the agent from its hub, in both ways of a network failure, and connects it again.
func TestPartition(t *testing.T) {
	h := newFakeHub(t, plane.ForTest(t), "partition").serve()
	proxy, err := localplane.NewProxy(h.bootstrap.Server)
	require.NoError(t, err)
	defer proxy.Close()
	h.bootstrap.Server = proxy.Config(&rest.Config{Host: h.bootstrap.Server}).Host
	store := &memory{}
	r := h.run(Options{Store: store})
	requirePhase(t, r, lifecycle.Joined)
	for _, fault := range []func(){proxy.Cut, proxy.Stall} {
		fault()
		h.change(func(s *v1alpha1.MembershipSpec) { s.Leave.DeadlineSeconds++ })
		<-time.After(3 * time.Second)
		require.Equal(t, lifecycle.Joined, r.last().Phase, "an unreachable hub does not change the phase")
		proxy.Heal()
		h.requireHeartbeats()
		eventually(t, "the agent does not observe the change", func() bool {
			return store.parsed(t).Leave.DeadlineSeconds == h.membership().Spec.Leave.DeadlineSeconds
		})
	}
}

// TestJoinRequest checks every answer to a JoinRequest, and bootstrap credentials that are created, deleted and
// changed.
func TestJoinRequest(t *testing.T) { testkit.Virtual(t, testJoinRequest) }

func testJoinRequest(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "joinrequest").serve()
	h.setAnswer(func(*v1alpha1.JoinRequest) {})
	credential := make(chan *registration.Bootstrap, 1)
	credential <- nil
	provide := func(b *registration.Bootstrap) { <-credential; credential <- b }
	clock := newFastClock()
	r := h.run(Options{Clock: clock, Bootstrap: BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
		b := <-credential
		credential <- b
		return b, nil
	})})
	requireMessage := func(text string) {
		t.Helper()
		mustertest.Eventually(t, timeLimit, "the message of the agent contains "+text, func() error {
			if last := r.last().Message; !strings.Contains(last, text) {
				return fmt.Errorf("the message of the agent is %q", last)
			}
			return nil
		})
	}
	requireMessage("there is no bootstrap credential")
	wrong := *h.bootstrap
	wrong.Token = "wrong"
	provide(&wrong)
	requireMessage("Unauthorized")
	old := *h.bootstrap
	old.TokenName = "old"
	provide(&old)
	requireMessage("The hub is processing the JoinRequest")
	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerHeld, nil) })
	requireMessage("The JoinRequest is pending")
	h.setAnswer(func(request *v1alpha1.JoinRequest) {
		if request.Spec.Token.Name != "old" {
			h.admit(request)
			return
		}
		h.writeAnswer(request, v1alpha1.AnswerDenied, func(s *v1alpha1.JoinRequestStatus) {
			s.Conditions[0].Reason = v1alpha1.ReasonTokenRefused
		})
	})
	h.reopen()
	requireMessage("denied")
	provide(h.bootstrap)
	requirePhase(t, r, lifecycle.Joined)
}

// reopen resets all requests, so that they are answered again.
func (h *fakeHub) reopen() {
	h.t.Helper()
	var list v1alpha1.JoinRequestList
	require.NoError(h.t, h.c.List(h.t.Context(), &list, client.InNamespace(h.name)))
	for i := range list.Items {
		list.Items[i].Status = v1alpha1.JoinRequestStatus{}
		require.NoError(h.t, h.c.Status().Update(h.t.Context(), &list.Items[i]))
	}
}

// TestSecretStore checks a store whose Secret another client writes.
func TestSecretStore(t *testing.T) { testkit.Virtual(t, testSecretStore) }

func testSecretStore(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "store")
	core, err := newMember(h.config)
	require.NoError(t, err)
	defer core.close()
	ctx, secrets := t.Context(), core.core.Secrets(h.name)
	a, b := SecretStore(secrets, "s"), SecretStore(secrets, "s")
	data, err := a.Load(ctx)
	require.NoError(t, err)
	require.Nil(t, data)
	require.NoError(t, a.Save(ctx, []byte("1")))
	require.Error(t, b.Save(ctx, []byte("2")), "a store that has not read the Secret must not overwrite it")
	data, err = b.Load(ctx)
	require.NoError(t, err)
	require.Equal(t, "1", string(data))
	require.NoError(t, b.Save(ctx, []byte("2")))
	require.Error(t, a.Save(ctx, []byte("3")), "a store must not overwrite an unread write of another client")
	_, err = a.Load(ctx)
	require.NoError(t, err)
	require.NoError(t, a.Save(ctx, []byte("3")))
	require.NoError(t, a.Delete(ctx))
	require.NoError(t, a.Delete(ctx))
	_, err = b.Load(ctx)
	require.NoError(t, err)
	require.NoError(t, b.Save(ctx, []byte("4")), "a deleted Secret is created again")

	source := SecretBootstrap(secrets, "boot")
	bootstrap, err := source.Load(ctx)
	require.NoError(t, err)
	require.Nil(t, bootstrap)
	h.ensure(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "boot"},
		Data: map[string][]byte{"join.yaml": []byte("x")}})
	_, err = source.Load(ctx)
	require.ErrorAs(t, err, new(*membership.InvalidError))
	require.NoError(t, source.Forget(ctx))
	require.NoError(t, source.Forget(ctx))

	boot := func(content string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "boot"},
			Data: map[string][]byte{"join.yaml": []byte(content)}}
	}
	exists := func() bool {
		err := h.c.Get(ctx, client.ObjectKeyFromObject(boot("")), &corev1.Secret{})
		require.NoError(t, client.IgnoreNotFound(err))
		return err == nil
	}
	h.ensure(boot("old"))
	_, _ = source.Load(ctx)
	require.NoError(t, h.c.Update(ctx, boot("new")))
	require.NoError(t, source.Forget(ctx))
	require.True(t, exists(), "a replaced bootstrap credential is not deleted")
	_, _ = source.Load(ctx)
	labeled := boot("new")
	labeled.Labels = map[string]string{"a": "b"}
	require.NoError(t, h.c.Update(ctx, labeled))
	require.NoError(t, source.Forget(ctx))
	require.False(t, exists(), "the same credential is deleted after a change of the labels")
	h.ensure(boot("unseen"))
	require.NoError(t, SecretBootstrap(secrets, "boot").Forget(ctx))
	require.False(t, exists(), "a restarted agent deletes the credential that it finds")
}

// TestAgent_LeavesNoGoroutines checks that no goroutines remain after agents of each method that joined, were
// stopped, or left.
func TestAgent_LeavesNoGoroutines(t *testing.T) {
	h := newFakeHub(t, plane.Borrow(t), "leak").serve()    // not in parallel: goroutines of other tests would be found
	own := plane.ForTest(t).User("leak", "system:masters") // client-go shares connections among clients of one config
	before := goleak.IgnoreCurrent()
	for _, method := range []registration.Method{token.Method{}, csr.Method{}} {
		store := &memory{}
		r := h.run(Options{Method: method, Store: store, Member: own})
		requirePhase(t, r, lifecycle.Joined)
		r.stop()
		r = h.run(Options{Method: method, Store: store, Member: own})
		requirePhase(t, r, lifecycle.Joined)
		h.change(func(s *v1alpha1.MembershipSpec) { s.State, s.Rejoin, s.Clean = v1alpha1.StateLeave, false, true })
		r.ended()
		require.NoError(t, h.c.Delete(t.Context(), h.membership()))
		require.NoError(t, h.c.Delete(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: h.memberNamespace(), Name: membership.AgentName}}))
	}
	goleak.VerifyNone(t, before)
}
