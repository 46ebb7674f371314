package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/identity"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestOptions_Validation(t *testing.T) {
	quota := func(name, limit string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(limit)}
	}
	named := func(name string) []membership.LeaveGate {
		return []membership.LeaveGate{membership.GateFunc(name, nil)}
	}
	server := newMemory(t)
	for _, test := range []struct {
		reason  string
		options hub.Options
		want    string
	}{
		{"an invalid namespace prefix", hub.Options{NamespacePrefix: "Member_"}, "hub.Options.NamespacePrefix"},
		{"a registration namespace with the prefix of member namespaces",
			hub.Options{RegistrationNamespace: "member-registration"},
			"hub.Options.RegistrationNamespace"},
		{"two gates with one name", hub.Options{Gates: append(named("twice"), named("twice")...)},
			"hub.Options.Gates[1]"},
		{"a gate with the reserved name agent", hub.Options{Gates: named("agent")}, "hub.Options.Gates[0]"},
		{"a gate with the reserved name namespace", hub.Options{Gates: named("namespace")}, "hub.Options.Gates[0]"},
		{"a gate with a name that is too long", hub.Options{Gates: named(strings.Repeat("x", 254))}, "hub.Options.Gates[0]"},
		{"a negative outage share", hub.Options{Heartbeat: heartbeat.Policy{OutageShare: -1}},
			"hub.Options.Heartbeat.OutageShare"},
		{"a RequestTTL that is too short", hub.Options{RequestTTL: time.Second}, "hub.Options.RequestTTL"},
		{"a negative limit of requests per token", hub.Options{MaxRequestsPerToken: -1}, "hub.Options.MaxRequestsPerToken"},
		{"a negative limit of requests", hub.Options{MaxRequests: -1}, "hub.Options.MaxRequests"},
		{"a quota of compute resources", hub.Options{NamespaceQuota: quota("requests.cpu", "1")},
			"hub.Options.NamespaceQuota[requests.cpu]: only numbers of objects can be limited"},
		{"a quota without a resource",
			hub.Options{NamespaceQuota: quota("count/", "1")}, "hub.Options.NamespaceQuota[count/]"},
		{"a quota for a resource that the hub creates",
			hub.Options{NamespaceQuota: quota("count/leases.coordination.k8s.io", "9")},
			"hub.Options.NamespaceQuota[count/leases.coordination.k8s.io]: the hub creates one"},
		{"a negative quota", hub.Options{NamespaceQuota: quota("count/secrets", "-1")},
			"hub.Options.NamespaceQuota[count/secrets]: must be a number of objects"},
		{"a quota that is not an integer", hub.Options{NamespaceQuota: quota("count/secrets", "500m")},
			"hub.Options.NamespaceQuota[count/secrets]: must be a number of objects"},
		{"a nil issuer",
			hub.Options{Issuers: map[v1alpha1.CredentialType]membership.Issuer{v1alpha1.CredentialToken: nil}},
			"hub.Options.Issuers[Token]"},
	} {
		mgr, err := manager.New(server.Config(),
			manager.Options{Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
		require.NoError(t, err)
		require.ErrorContains(t, hub.SetupWithManager(mgr, test.options), test.want, test.reason)
	}
}

// TestLeaveGates_BlockTheLeave checks that a gate that does not open blocks the leave and reports its remaining
// objects, and that a gate that panics blocks only its own member.
func TestLeaveGates_BlockTheLeave(t *testing.T) { testkit.Virtual(t, testLeaveGatesBlockTheLeave) }

func testLeaveGatesBlockTheLeave(t *testing.T) {
	var open, panics atomic.Bool
	works := membership.GateFunc("works", func(_ context.Context, member membership.Member) ([]string, error) {
		switch {
		case member.Name != "gated" || open.Load():
			return nil, nil
		case panics.Load():
			panic("a gate is code of the product")
		default:
			return []string{"work/guestbook"}, nil
		}
	})
	forced := &countingForcer{LeaveGate: works}
	h := startHub(t, newMemory(t), hub.Options{Gates: []membership.LeaveGate{forced}})
	bootstrap := h.token("gates", v1alpha1.JoinTokenSpec{})
	a, other := h.joined(bootstrap, agent.Options{Name: "gated"}), h.joined(bootstrap, agent.Options{Name: "not-gated"})

	require.NoError(t, h.Client.Delete(t.Context(), h.member("gated")))
	h.Eventually("the status contains the gate and the remaining objects", func() error {
		cluster := h.member("gated")
		joined := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionJoined)
		ok := cluster.Status.Leave != nil && cluster.Status.Leave.Waiting == "works" &&
			strings.Contains(joined.Message, "works (work/guestbook)")
		return orError(ok, "%+v %s", cluster.Status.Leave, joined.Message)
	})
	h.untilCondition("gated", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	panics.Store(true)
	h.Eventually("the status reports the panic of the gate", func() error {
		leave := h.member("gated").Status.Leave
		return orError(strings.Contains(strings.Join(leave.Remaining, ""), "panicked"), "%+v", leave)
	})
	h.remove("not-gated")
	open.Store(true)
	h.untilGone("gated")
	require.Zero(t, forced.times.Load(), "a gate that opens before the deadline is not forced")
	a.stop()
	other.stop()

	open.Store(false)
	panics.Store(false)
	a = h.joined(bootstrap, agent.Options{Name: "gated"})
	h.change("gated", func(c *v1alpha1.MemberCluster) { c.Spec.Leave.DeadlineSeconds = 2 })
	h.remove("gated")
	require.Positive(t, forced.times.Load(), "the gate is forced at the deadline")
	a.stop()
}

// TestLeaveGates_ForcedBeforeNamespaceDeletion checks that a gate that was not called before the deadline, because an
// earlier gate was closed, is forced before the namespace is deleted, and that a gate that is not a Forcer does not
// prevent this.
func TestLeaveGates_ForcedBeforeNamespaceDeletion(t *testing.T) {
	testkit.Virtual(t, testLeaveGatesForcedBeforeNamespaceDeletion)
}

func testLeaveGatesForcedBeforeNamespaceDeletion(t *testing.T) {
	var h *testHub
	var calls atomic.Int32
	forcedIn := make(chan corev1.NamespacePhase, 1) // the phase of the namespace at the first call of Force
	notCalled := forceGate{
		membership.GateFunc("unasked",
			func(context.Context, membership.Member) ([]string, error) { calls.Add(1); return nil, nil }),
		func(ctx context.Context, member membership.Member) error {
			var namespace corev1.Namespace
			if err := h.Client.Get(ctx, client.ObjectKey{Name: member.Namespace}, &namespace); err != nil {
				return err
			}
			select {
			case forcedIn <- namespace.Status.Phase:
			default:
			}
			return nil
		},
	}
	closed := forceGate{
		membership.GateFunc("shut",
			func(context.Context, membership.Member) ([]string, error) { return []string{"addon/mesh"}, nil }),
		func(context.Context, membership.Member) error { return errors.New("no") },
	}
	h = startHub(t, newMemory(t), hub.Options{Gates: []membership.LeaveGate{closed, notCalled}})
	h.token("forcing", v1alpha1.JoinTokenSpec{}) // the hub has started
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "forcing"},
		Spec:       v1alpha1.MemberClusterSpec{Accepted: new(true), Leave: v1alpha1.LeavePolicy{DeadlineSeconds: 1}},
	})
	h.untilPrepared("forcing")
	h.change("forcing", func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateLeave })
	left := h.untilPhase("forcing", v1alpha1.PhaseLeft)
	require.True(t, left.Status.Leave.Forced)
	require.Equal(t, "shut", left.Status.Leave.Waiting)
	require.Zero(t, calls.Load())
	require.NotEmpty(t, forcedIn)
	require.Equal(t, corev1.NamespaceActive, <-forcedIn)
	h.remove("forcing")
}

type forceGate struct {
	membership.LeaveGate
	force func(context.Context, membership.Member) error
}

func (f forceGate) Force(ctx context.Context, member membership.Member) error {
	return f.force(ctx, member)
}

// TestLeaveGates_ResultIsTruncated checks that a gate that returns more than the API permits blocks a leave until the
// deadline, like any other gate.
func TestLeaveGates_ResultIsTruncated(t *testing.T) {
	testkit.Virtual(t, testLeaveGatesResultIsTruncated)
}

func testLeaveGatesResultIsTruncated(t *testing.T) {
	works := membership.GateFunc("works", func(context.Context, membership.Member) ([]string, error) {
		return slices.Repeat([]string{strings.Repeat("ü", 33000)}, 25), nil
	})
	h := startHub(t, newMemory(t), hub.Options{Gates: []membership.LeaveGate{works}})
	h.token("words", v1alpha1.JoinTokenSpec{}) // the hub has started
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "words"},
		Spec:       v1alpha1.MemberClusterSpec{Accepted: new(true), Leave: v1alpha1.LeavePolicy{DeadlineSeconds: 3}},
	})
	h.untilPrepared("words")
	h.change("words", func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateLeave })
	left := h.untilPhase("words", v1alpha1.PhaseLeft)
	require.True(t, left.Status.Leave.Forced)
	require.Equal(t, "works", left.Status.Leave.Waiting)
	require.Len(t, left.Status.Leave.Remaining, 20)
	h.remove("words")
}

// TestLeaveGates_CalledPeriodically checks that a gate is called every two seconds, regardless of its result and of
// changes of its member.
func TestLeaveGates_CalledPeriodically(t *testing.T) {
	testkit.Virtual(t, testLeaveGatesCalledPeriodically)
}

func testLeaveGatesCalledPeriodically(t *testing.T) {
	var calls atomic.Int64
	works := membership.GateFunc("works", func(context.Context, membership.Member) ([]string, error) {
		return nil, fmt.Errorf("failure %d", calls.Add(1))
	})
	h := startHub(t, newMemory(t), hub.Options{Gates: []membership.LeaveGate{works}})
	h.token("polled", v1alpha1.JoinTokenSpec{}) // the hub has started
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "polled"}, Spec: v1alpha1.MemberClusterSpec{Accepted: new(true)},
	})
	h.untilPrepared("polled")
	require.NoError(t, h.Client.Delete(t.Context(), h.member("polled")))
	h.Eventually("the gate is called", func() error { return orError(calls.Load() > 0, "the gate was not called") })
	before, start := calls.Load(), time.Now()
	for n := range 30 { // At least 9 seconds.
		h.Eventually("the Membership can be changed", func() error {
			self := h.membership("polled")
			self.Status.Version.Kubernetes = fmt.Sprintf("v1.%d.0", n)
			return h.Client.Status().Update(t.Context(), self)
		})
		pause(300 * time.Millisecond)
	}
	n := calls.Load() - before
	require.Positive(t, n, "the gate is called periodically")
	require.LessOrEqual(t, n, int64(time.Since(start)/(2*time.Second))+2, "the gate is called at most every two seconds")
	h.change("polled", func(c *v1alpha1.MemberCluster) { c.Spec.Leave.DeadlineSeconds = 1 })
	h.untilGone("polled")
}

type countingForcer struct {
	membership.LeaveGate
	times atomic.Int32
}

func (f *countingForcer) Force(context.Context, membership.Member) error {
	f.times.Add(1)
	return nil
}

// failingIssuer is an issuer that returns a different error each time, like broken connections.
type failingIssuer struct {
	membership.Issuer
	issues, cleans atomic.Int64
	cleanable      atomic.Bool
}

func (f *failingIssuer) Issue(context.Context, membership.Member, v1alpha1.CredentialRequest) (v1alpha1.Credential,
	error) {
	return v1alpha1.Credential{}, fmt.Errorf("failure %d", f.issues.Add(1))
}

func (f *failingIssuer) Clean(context.Context, membership.Member) error {
	if f.cleanable.Load() {
		return nil
	}
	return fmt.Errorf("failure %d", f.cleans.Add(1))
}

// TestFailures_RetriedWithBackoff checks that failures are retried with an increasing backoff, also if each failure
// is written to the status.
func TestFailures_RetriedWithBackoff(t *testing.T) {
	testkit.Virtual(t, testFailuresRetriedWithBackoff)
}

func testFailuresRetriedWithBackoff(t *testing.T) {
	issuer := &failingIssuer{Issuer: &token.Issuer{}}
	h := startHub(t, newMemory(t),
		hub.Options{Issuers: map[v1alpha1.CredentialType]membership.Issuer{v1alpha1.CredentialToken: issuer}})
	a := h.newAgent(h.token("failing", v1alpha1.JoinTokenSpec{AutoAccept: true}),
		agent.Options{Name: "failing", Method: token.Method{}}).start()
	h.request("id-failing", v1alpha1.AnswerPending, v1alpha1.ReasonIssueFailed)
	pause(5 * time.Second)
	require.Less(t, issuer.issues.Load(), int64(20), "number of calls of Issue")
	a.stop()

	require.NoError(t, h.Client.Delete(t.Context(), h.member("failing")))
	h.Eventually("the failure is shown", func() error {
		message := messages(h.member("failing").Status.Conditions)
		return orError(strings.Contains(message, "failure"), "%s", message)
	})
	before := issuer.cleans.Load() // The failure may have been shown late.
	pause(5 * time.Second)
	require.Less(t, issuer.cleans.Load()-before, int64(20), "number of calls of Clean")
	issuer.cleanable.Store(true)
	h.untilGone("failing")
}

// switchableIssuer is an issuer that can be made to fail.
type switchableIssuer struct {
	membership.Issuer
	fails atomic.Bool
}

func (f *switchableIssuer) Issue(ctx context.Context, member membership.Member,
	request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	if f.fails.Load() {
		return v1alpha1.Credential{}, errors.New("the issuer is on holiday")
	}
	return f.Issuer.Issue(ctx, member, request)
}

// TestRenewal_FailureIsReported checks that a renewal that fails is reported, and that the member is still joined and
// all its other objects are reconciled.
func TestRenewal_FailureIsReported(t *testing.T) { testkit.Virtual(t, testRenewalFailureIsReported) }

func testRenewalFailureIsReported(t *testing.T) {
	server := newMemory(t)
	admin, err := client.New(server.Config(), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	issuer := &switchableIssuer{Issuer: &token.Issuer{Client: admin, Reader: admin}}
	h := startHub(t, server,
		hub.Options{Issuers: map[v1alpha1.CredentialType]membership.Issuer{v1alpha1.CredentialToken: issuer}})
	clock := &mustertest.Clock{}
	a := h.joined(h.token("holiday", v1alpha1.JoinTokenSpec{}),
		agent.Options{Name: "holiday", Method: token.Method{}, Clock: clock})
	issuer.fails.Store(true)
	clock.Move(token.DefaultLifetime * 79 / 100)
	cluster := h.untilCondition("holiday", v1alpha1.ConditionCredentialValid, metav1.ConditionFalse,
		v1alpha1.ReasonRenewalFailed)
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReadyToJoin)
	require.Equal(t, metav1.ConditionTrue, ready.Status, ready.Message)
	require.Equal(t, v1alpha1.PhaseJoined, cluster.Status.Phase)
	issuer.fails.Store(false)
	h.untilCondition("holiday", v1alpha1.ConditionCredentialValid, metav1.ConditionTrue, v1alpha1.ReasonIssued)
	h.remove("holiday")
	a.stop()
}

// testRenewal checks that a credential is renewed before 80 % of its lifetime have passed, without a restart, and that
// a refusal of the hub is reported on both sides.
func testRenewal(t *testing.T, h *testHub) {
	bootstrap := h.token("renewal", v1alpha1.JoinTokenSpec{})
	for name, method := range map[string]registration.Method{"renewal-token": token.Method{},
		"renewal-csr": csr.Method{}} {
		testkit.Step(t, name, func() {
			clock := &mustertest.Clock{}
			a := h.joined(bootstrap, agent.Options{Name: name, Method: method, Clock: clock})
			lifetime := map[bool]time.Duration{true: token.DefaultLifetime,
				false: csr.DefaultLifetime}[method == registration.Method(token.Method{})]
			for range 2 {
				before := ptr.Deref(h.membership(name).Spec.Renewal, v1alpha1.RenewalAnswer{}).ID
				clock.Move(lifetime * 79 / 100)
				h.Eventually("the credential is renewed and in use", func() error {
					self := h.membership(name)
					answer := self.Spec.Renewal
					renewed := answer != nil && answer.ID != before && answer.Credential != nil && self.Status.Renewal == nil
					return orError(renewed, "requested %v, answered %v", self.Status.Renewal, answer)
				})
				h.untilCondition(name, v1alpha1.ConditionCredentialValid, metav1.ConditionTrue, v1alpha1.ReasonIssued)
				h.untilCondition(name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
			}
			h.remove(name)
			a.stop()
		})
	}

	testkit.Step(t, "refused", func() {
		clock := &mustertest.Clock{}
		a := h.joined(bootstrap, agent.Options{Name: "renewal-refused", Clock: clock})
		// With another recorded type, the type that the agent requests is not issued any more. The access stays.
		h.change("renewal-refused", func(c *v1alpha1.MemberCluster) {
			c.Spec.Credential = v1alpha1.CredentialIdentity
			c.Spec.Identity = &rbacv1.Subject{Kind: "ServiceAccount", Name: membership.AgentName,
				Namespace: "member-renewal-refused"}
		})
		clock.Move(token.DefaultLifetime * 79 / 100)
		h.untilCondition("renewal-refused", v1alpha1.ConditionCredentialValid, metav1.ConditionFalse,
			v1alpha1.ReasonRenewalRefused)
		h.Eventually("the agent reports the refusal", func() error {
			valid := meta.FindStatusCondition(h.membership("renewal-refused").Status.Conditions,
				v1alpha1.ConditionCredentialValid)
			return orError(valid != nil && valid.Status == metav1.ConditionFalse, "%+v", valid)
		})
		h.remove("renewal-refused")
		a.stop()
	})
}

func (h *testHub) membership(name string) *v1alpha1.Membership {
	h.T.Helper()
	self := &v1alpha1.Membership{}
	require.NoError(h.T, h.Client.Get(h.T.Context(),
		client.ObjectKey{Namespace: "member-" + name, Name: membership.MembershipName}, self))
	return self
}

// testIdentity checks that an agent with its own credential waits until an administrator has assigned the subject of
// that credential to the member.
func testIdentity(t *testing.T, h *testHub) {
	bootstrap := h.token("identity", v1alpha1.JoinTokenSpec{AutoAccept: true})
	options := agent.Options{Name: "own", Method: identity.Method{}}
	own := h.withCertificate("the-agent-of-own").TLSClientConfig
	options.HubConfig = func(config *rest.Config) { config.TLSClientConfig = own }
	a := h.newAgent(bootstrap, options).start()
	h.request("id-own", v1alpha1.AnswerHeld, v1alpha1.ReasonIdentityMissing)
	h.change("own", func(c *v1alpha1.MemberCluster) {
		c.Spec.Identity = &rbacv1.Subject{Kind: "User", Name: "the-agent-of-own"}
	})
	h.untilPhase("own", v1alpha1.PhaseJoined)
	h.remove("own")
	a.stop()
}

// TestJoinRequests_OldRequestsAreDeleted checks that a request that is not accepted is deleted automatically, with its
// MemberCluster, and that an accepted one stays.
func TestJoinRequests_OldRequestsAreDeleted(t *testing.T) {
	testkit.Virtual(t, testJoinRequestsOldRequestsAreDeleted)
}

func testJoinRequestsOldRequestsAreDeleted(t *testing.T) {
	clock := &mustertest.Clock{}
	h := startHub(t, newMemory(t), hub.Options{Clock: clock, RequestTTL: time.Hour})
	bootstrap := h.token("old", v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(-1))})
	ignored := h.newAgent(bootstrap, agent.Options{Name: "ignored"}).start()
	h.request("id-ignored", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	ignored.stop()
	in := h.joined(bootstrap, agent.Options{Name: "in"})

	clock.Move(2 * time.Hour)
	require.NoError(t, client.IgnoreNotFound(h.touch("id-ignored"))) // Timers are real: trigger a reconcile.
	h.untilGone("ignored")
	h.untilClean("ignored")
	h.untilPhase("in", v1alpha1.PhaseJoined)
	h.remove("in")
	in.stop()
}

// touch causes a reconcile of the JoinRequest of a cluster.
func (h *testHub) touch(clusterID string) error {
	var list v1alpha1.JoinRequestList
	if err := h.Client.List(h.T.Context(), &list, client.InNamespace(membership.RegistrationNamespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if request := &list.Items[i]; request.Spec.ClusterID == clusterID {
			before := request.DeepCopy()
			request.Labels = map[string]string{"touched": "yes"}
			return h.Client.Patch(h.T.Context(), request, client.MergeFrom(before))
		}
	}
	return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("joinrequests").GroupResource(), clusterID)
}

// TestFloodIsBounded checks that a stolen bootstrap credential creates no more requests than the quota
// permits, and that they are deleted after RequestTTL.
func TestFloodIsBounded(t *testing.T) { testkit.Virtual(t, testFloodIsBounded) }

func testFloodIsBounded(t *testing.T) {
	const quota = 3
	clock := &mustertest.Clock{}
	h := startHub(t, newMemory(t), hub.Options{MaxRequests: quota, MaxRequestsPerToken: quota, Clock: clock})
	bootstrap := h.token("flood", v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(-1))})
	requester := h.requester(bootstrap)
	var created int
	var refused error
	for n := 0; n < 50 && refused == nil; n++ {
		claim, err := registration.NewClaimKey()
		require.NoError(t, err)
		credential, _, err := token.Method{}.Request(claim, nil)
		require.NoError(t, err)
		request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{ClusterID: claim.Fingerprint(),
			Name: "flood-" + claim.Fingerprint()[:8], Credential: credential}}
		request.Finalizers = []string{"example.com/stay"}
		require.NoError(t, registration.Sign(request, claim, bootstrap))
		err = requester.Create(t.Context(), request)
		switch {
		case err == nil:
			created++
		case strings.Contains(err.Error(), "exceeded quota"):
			refused = err
		default:
			pause(200 * time.Millisecond) // the API server has not observed the status of the quota yet
		}
	}
	require.True(t, apierrors.IsForbidden(refused), "%d requests were created, then: %v", created, refused)
	require.LessOrEqual(t, created, quota)
	h.Eventually("the number of members equals that of the requests", func() error {
		var clusters v1alpha1.MemberClusterList
		if err := h.Client.List(t.Context(), &clusters); err != nil {
			return err
		}
		return orError(len(clusters.Items) == created, "%d members, %d requests", len(clusters.Items), created)
	})

	// Finalizers block neither a deletion by an administrator nor the deletion of old requests.
	var list v1alpha1.JoinRequestList
	require.NoError(t, h.Client.List(t.Context(), &list))
	require.NoError(t, h.Client.Delete(t.Context(), &list.Items[0]))
	h.Eventually("the request that an administrator deleted is removed", func() error {
		err := h.Client.Get(t.Context(), client.ObjectKeyFromObject(&list.Items[0]), &v1alpha1.JoinRequest{})
		return orError(apierrors.IsNotFound(err), "%v", err)
	})
	clock.Move(48 * time.Hour)
	for _, request := range list.Items[1:] {
		// Timers are real: trigger a reconcile. Another event may have been earlier.
		require.NoError(t, client.IgnoreNotFound(h.touch(request.Spec.ClusterID)))
	}
	h.Eventually("all requests are deleted", func() error {
		if err := h.Client.List(t.Context(), &list); err != nil {
			return err
		}
		return orError(len(list.Items) == 0, "%d requests exist", len(list.Items))
	})
}

// TestHub_RestartWritesNothing checks that a hub that starts when all objects exist writes nothing, and that all
// members stay healthy.
func TestHub_RestartWritesNothing(t *testing.T) { testkit.Virtual(t, testHubRestartWritesNothing) }

func testHubRestartWritesNothing(t *testing.T) {
	server := newMemory(t)
	h := startHub(t, server, hub.Options{})
	bootstrap := h.token("restart", v1alpha1.JoinTokenSpec{})
	a := h.joined(bootstrap, agent.Options{Name: "restart"})
	pause(3 * time.Second)
	before := h.member("restart")
	h.stop()

	var counted requests
	h = startHub(t, server, hub.Options{}, counted.wrap)
	pause(8 * time.Second) // longer than the grace period
	// The hub increases its epoch and writes nothing else.
	if diff := cmp.Diff(map[string]int{"PUT configmaps": 1}, writes(counted.take())); diff != "" {
		t.Errorf("writes of a starting hub (-want +got):\n%s", diff)
	}
	require.Equal(t, before.Status.Conditions, h.member("restart").Status.Conditions)
	h.remove("restart")
	a.stop()
}

// TestEvents_EachTransition checks that each transition records an Event about the MemberCluster. It needs a control
// plane, because the name of an Event contains its time, and transitions happen at one instant of virtual time.
func TestEvents_EachTransition(t *testing.T) {
	h := startHub(t, plane.ForTest(t), hub.Options{})
	bootstrap := h.token("events", v1alpha1.JoinTokenSpec{})
	a := h.joined(bootstrap, agent.Options{Name: "eventful"})
	uid := h.member("eventful").UID
	h.remove("eventful")
	a.stop()
	h.untilEvents(uid, "Accepted", "NamespaceCreated", "AccessGranted", "Joining", "Joined", "Heartbeating", "Leaving",
		"AccessRevoked", "NamespaceDeleted", "Left")
}

// untilEvents waits until there are events with these reasons about an object.
func (h *testHub) untilEvents(uid types.UID, reasons ...string) {
	h.T.Helper()
	h.Eventually("all transitions have an Event", func() error {
		var list eventsv1.EventList
		if err := h.Client.List(h.T.Context(), &list, client.InNamespace(corev1.NamespaceDefault)); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, event := range list.Items {
			if event.Regarding.UID == uid {
				seen[event.Reason] = true
			}
		}
		for _, reason := range reasons {
			if !seen[reason] {
				return errors.New("no event " + reason)
			}
		}
		return nil
	})
}

// testOrphans checks that orphaned objects that a companion reports are in the status and the conditions of the
// MemberCluster, with an Event, and that the condition is True when no orphaned objects are left.
func testOrphans(t *testing.T, h *testHub) {
	bootstrap := h.token("orphans", v1alpha1.JoinTokenSpec{})
	reports := make(chan v1alpha1.OrphanSummary)
	a := h.joined(bootstrap, agent.Options{Name: "orphans", Companions: []agent.Companion{
		agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
			for {
				select {
				case summary := <-reports:
					hub.ReportOrphans(summary)
				case <-ctx.Done():
					return nil
				}
			}
		}),
	}})
	require.Nil(t, meta.FindStatusCondition(h.member("orphans").Status.Conditions, v1alpha1.ConditionNoOrphans))
	want := v1alpha1.OrphanSummary{Objects: 3, Works: 2, WorkNames: []string{"cart", "shop"}}
	reports <- want
	cluster := h.untilCondition("orphans", v1alpha1.ConditionNoOrphans, metav1.ConditionFalse,
		v1alpha1.ReasonObjectsOrphaned)
	require.Equal(t, &want, cluster.Status.Orphans)
	require.Equal(t, &want, h.membership("orphans").Status.Orphans)
	reports <- v1alpha1.OrphanSummary{}
	cluster = h.untilCondition("orphans", v1alpha1.ConditionNoOrphans, metav1.ConditionTrue, v1alpha1.ReasonNoOrphans)
	require.Nil(t, cluster.Status.Orphans)
	h.untilEvents(cluster.UID, v1alpha1.ReasonObjectsOrphaned, v1alpha1.ReasonNoOrphans)
	h.remove("orphans")
	a.stop()
}

// TestAcceptor_FailuresAreIsolated checks that the Acceptor of a product decides, and that its delays and panics
// affect only the request that they concern.
func TestAcceptor_FailuresAreIsolated(t *testing.T) {
	testkit.Virtual(t, testAcceptorFailuresAreIsolated)
}

func testAcceptorFailuresAreIsolated(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	acceptor := membership.AcceptorFunc(func(ctx context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance,
		error) {
		switch request.Spec.Name {
		case "policy-slow":
			<-ctx.Done()
			return membership.Acceptance{}, ctx.Err()
		case "policy-panics":
			panic("a policy is code of the product")
		case "policy-down":
			if down.Load() {
				return membership.Acceptance{}, errors.New("no route to the inventory")
			}
			return membership.Acceptance{Decision: membership.Accept}, nil
		case "policy-denied":
			return membership.Acceptance{Decision: membership.Deny, Reason: "No clusters from there."}, nil
		case "policy-held":
			return membership.Acceptance{Decision: membership.Hold, Reason: "Ask the network team."}, nil
		default:
			return membership.Acceptance{Decision: membership.Accept}, nil
		}
	})
	clock := &mustertest.Clock{}
	h := startHub(t, newMemory(t), hub.Options{Acceptor: acceptor, RequestTTL: time.Hour, Clock: clock})
	bootstrap := h.token("policy", v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(-1))})
	var agents []*testAgent
	for _, name := range []string{"policy-slow", "policy-panics", "policy-down", "policy-denied", "policy-held"} {
		agents = append(agents, h.newAgent(bootstrap, agent.Options{Name: name}).start())
	}
	denied := h.request("id-policy-denied", v1alpha1.AnswerDenied, v1alpha1.ReasonDenied)
	require.Contains(t, messages(denied.Status.Conditions), "No clusters from there.")
	blocked := h.request("id-policy-held", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	require.Contains(t, messages(blocked.Status.Conditions), "Ask the network team.")

	start := time.Now()
	agents = append(agents, h.newAgent(bootstrap, agent.Options{Name: "policy-fine"}).start())
	h.untilPhase("policy-fine", v1alpha1.PhaseJoined)
	require.Less(t, time.Since(start), 14*time.Second, "a slow Acceptor delays no other member")
	h.remove("policy-fine")

	for name, text := range map[string]string{
		"policy-slow": "deadline exceeded", "policy-panics": "panicked", "policy-down": "no route to the inventory",
	} {
		failed := h.request("id-"+name, v1alpha1.AnswerPending, v1alpha1.ReasonPolicyFailed)
		require.Contains(t, messages(failed.Status.Conditions), text)
	}
	down.Store(false)
	h.untilPhase("policy-down", v1alpha1.PhaseJoined)
	h.remove("policy-down")
	clock.Move(2 * time.Hour)
	require.NoError(t, h.touch("id-policy-panics"))
	h.Eventually("a request without a decision is deleted automatically", func() error {
		var list v1alpha1.JoinRequestList
		return errors.Join(h.Client.List(t.Context(), &list), requireNone(&list, func(o client.Object) bool {
			return o.(*v1alpha1.JoinRequest).Spec.Name == "policy-panics" && o.GetLabels()["touched"] != ""
		}))
	})
	for _, a := range agents {
		a.stop()
	}
	var list v1alpha1.JoinRequestList
	require.NoError(t, h.Client.List(t.Context(), &list))
	for i := range list.Items {
		require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), &list.Items[i])))
	}
	h.remove("policy-held")
}
