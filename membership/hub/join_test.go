package hub_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestWritesOfAJoin checks that the writes of a join are those listed in doc.go. Reads are not listed: the hub reads
// its caches, except for the Secret of the token.
func TestWritesOfAJoin(t *testing.T) { testkit.Virtual(t, testWritesOfAJoin) }

func testWritesOfAJoin(t *testing.T) {
	var ofHub, ofAgent requests
	h := startHub(t, newMemory(t), hub.Options{}, ofHub.wrap)
	bootstrap := h.token("writes", v1alpha1.JoinTokenSpec{AutoAccept: true})

	for _, test := range []struct {
		method             registration.Method
		name               string
		wantHub, wantAgent map[string]int
	}{
		{
			token.Method{}, "writes-token",
			map[string]int{
				"PATCH jointokens/status": 1, "POST memberclusters": 1, "POST namespaces": 1, "POST leases": 1,
				"POST memberships":  1,
				"POST rolebindings": 1, "POST serviceaccounts": 1, "POST serviceaccounts/token": 1,
				"PATCH joinrequests/status": 1, "DELETE joinrequests": 1,
			},
			map[string]int{"POST joinrequests": 1, "PUT leases": 1, "PUT memberships/status": 1},
		},
		{
			csr.Method{}, "writes-csr",
			map[string]int{
				"PATCH jointokens/status": 1, "POST memberclusters": 1, "POST namespaces": 1, "POST leases": 1,
				"POST memberships":  1,
				"POST rolebindings": 1, "POST certificatesigningrequests": 1, "PUT certificatesigningrequests/approval": 1,
				"DELETE certificatesigningrequests": 1,
				"PATCH joinrequests/status":         1, "DELETE joinrequests": 1,
			},
			map[string]int{"POST joinrequests": 1, "PUT leases": 1, "PUT memberships/status": 1},
		},
	} {
		testkit.Step(t, test.name, func() {
			pause(time.Second) // for the responses to earlier requests
			ofHub.take()
			ofAgent.take()
			options := agent.Options{Name: test.name, Method: test.method}
			options.HubConfig = func(config *rest.Config) { *config = *ofAgent.wrap(config) }
			a := h.newAgent(bootstrap, options).start()
			h.untilCondition(test.name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
			pause(2 * time.Second) // for unexpected requests

			pending := ofHub.at("PATCH joinrequests/status").Sub(ofAgent.at("POST joinrequests"))
			got := writes(ofHub.take())
			// A request that is pending for two seconds gets an answer in between. Its creation time is in whole seconds.
			if n := got["PATCH joinrequests/status"]; n > 1 && n <= 3 && pending > time.Second {
				got["PATCH joinrequests/status"] = 1
			}
			delete(got, "POST events")
			delete(got, "PATCH events")
			// If the hub observes the Membership before the first heartbeat, it writes the status once more.
			if n := got["PATCH memberclusters/status"]; n != 2 && n != 3 {
				t.Errorf("writes of the MemberCluster's status: want 2 or 3, got %d", n)
			}
			delete(got, "PATCH memberclusters/status")
			if diff := cmp.Diff(test.wantHub, got); diff != "" {
				t.Errorf("writes of the hub (-want +got):\n%s", diff)
			}
			sent := writes(ofAgent.take())
			if sent["PUT leases"] == 2 { // The second heartbeat is at a random time in the first period.
				sent["PUT leases"] = 1
			}
			if diff := cmp.Diff(test.wantAgent, sent); diff != "" {
				t.Errorf("writes of the agent (-want +got):\n%s", diff)
			}
			recorded := h.member(test.name).Status.CredentialExpirationTime
			require.NotNil(t, recorded, "the status has the expiration time when the request is deleted")
			require.True(t, recorded.After(time.Now().Add(time.Hour)), recorded)
			h.remove(test.name)
			a.stop()
		})
	}
}

// TestSteadyState checks that a member in steady state costs the hub one Lease write per period.
func TestSteadyState(t *testing.T) { testkit.Virtual(t, testSteadyState) }

func testSteadyState(t *testing.T) {
	const periods = 8
	var ofHub, ofAgent requests
	h := startHub(t, newMemory(t), hub.Options{}, ofHub.wrap)
	bootstrap := h.token("steady", v1alpha1.JoinTokenSpec{})
	options := agent.Options{Name: "steady", ResourceInterval: 2 * time.Second, ProbeInterval: time.Second}
	options.HubConfig = func(config *rest.Config) { *config = *ofAgent.wrap(config) }
	a := h.joined(bootstrap, options)
	h.untilPhase("steady", v1alpha1.PhaseJoined)
	// After a join, the request is deleted and resources are reported.
	h.Eventually("the hub has sent nothing for three seconds", func() error {
		ofHub.take()
		pause(3 * time.Second)
		requests := ofHub.take()
		delete(requests, "GET memberclusters")
		return orError(len(requests) == 0, "requests: %v", requests)
	})
	ofAgent.take()
	pause(periods * time.Second)

	got := ofAgent.take()
	if n := got["PUT leases"]; n < periods-2 || n > periods+2 {
		t.Errorf("Lease writes: got %d in %d periods", n, periods)
	}
	delete(got, "PUT leases")
	if len(got) > 0 {
		t.Errorf("unexpected requests of the agent to the hub: %v", got)
	}
	requests := ofHub.take()
	if n := requests["GET memberclusters"]; n > 2 {
		t.Errorf("reads of the version of the store: got %d in %d s, want one in ten seconds", n, periods)
	}
	delete(requests, "GET memberclusters")
	if got := requests; len(got) > 0 {
		t.Errorf("unexpected requests of the hub: %v", got)
	}
	h.remove("steady")
	a.stop()
}

// testAcceptance accepts a member without a decision, then sets its acceptance to false for a while.
func testAcceptance(t *testing.T, h *testHub) {
	bootstrap := h.token("acceptance", v1alpha1.JoinTokenSpec{Labels: map[string]string{"team": "a"}})
	a := h.newAgent(bootstrap,
		agent.Options{Name: "hesitant", Labels: map[string]string{"team": "b", "region": "eu"}}).start()

	h.request("id-hesitant", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	cluster := h.untilPhase("hesitant", v1alpha1.PhasePending)
	require.Equal(t, "eu", cluster.Labels["region"], "the label that the agent requests")
	require.Equal(t, "a", cluster.Labels["team"], "the label of the token has precedence")
	require.Equal(t, "acceptance", cluster.Labels["membership.muster.dev/join-token"])

	h.change("hesitant", func(c *v1alpha1.MemberCluster) {
		c.Spec.Accepted = new(true)
		c.Spec.HeartbeatPeriodSeconds = 1
	})
	h.untilCondition("hesitant", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)

	h.change("hesitant", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(false) })
	h.untilPhase("hesitant", v1alpha1.PhaseDenied)
	h.untilCondition("hesitant", v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted)

	h.change("hesitant", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	h.untilCondition("hesitant", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	h.remove("hesitant")
	a.stop()
}

// testLeaveAndJoinAgain checks that a leave that keeps the MemberCluster can be reverted when it is complete.
func testLeaveAndJoinAgain(t *testing.T, h *testHub) {
	bootstrap := h.token("again", v1alpha1.JoinTokenSpec{})
	a := h.joined(bootstrap, agent.Options{Name: "again"})
	first := h.member("again").Spec.Claim

	h.change("again", func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateLeave })
	left := h.untilPhase("again", v1alpha1.PhaseLeft)
	require.Empty(t, left.Spec.Claim, "no agent has the claim of a cluster that has left")
	require.False(t, left.Status.Leave.Forced, "%+v", left.Status.Leave)
	h.request("id-again", v1alpha1.AnswerHeld, v1alpha1.ReasonStateLeave)

	h.change("again", func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateJoin })
	h.untilCondition("again", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	require.NotEqual(t, first, h.member("again").Spec.Claim,
		"another membership has another claim key, so that old credentials stay invalid")
	h.remove("again")
	a.stop()
}

// testDuplicateClaim checks two clusters with one ID: the request of the second is blocked, without an effect on the
// first, and an administrator can admit the second.
func testDuplicateClaim(t *testing.T, h *testHub) {
	bootstrap := h.token("duplicate", v1alpha1.JoinTokenSpec{AutoAccept: true})
	first := h.joined(bootstrap, agent.Options{Name: "twin"})
	claim := h.member("twin").Spec.Claim

	second := h.newAgent(bootstrap, agent.Options{Name: "other-twin", ClusterID: "id-twin"}).start()
	blocked := h.request("id-twin", v1alpha1.AnswerHeld, v1alpha1.ReasonClusterIDTaken)
	require.Contains(t, messages(blocked.Status.Conditions),
		"set spec.claim of MemberCluster twin to "+blocked.Status.Claim)
	pause(3 * time.Second)
	require.Equal(t, claim, h.member("twin").Spec.Claim)
	h.untilCondition("twin", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)

	first.stop()
	h.change("twin", func(c *v1alpha1.MemberCluster) { c.Spec.Claim = blocked.Status.Claim })
	h.Eventually("the second agent has taken over", func() error {
		cluster := h.member("twin")
		if cluster.Status.Phase != v1alpha1.PhaseJoined {
			return fmt.Errorf("the phase is %s: %s", cluster.Status.Phase, messages(cluster.Status.Conditions))
		}
		return nil
	})
	h.untilCondition("twin", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)

	// The first agent returns with a formerly valid credential. It has no access, and the other agent stays.
	first.start()
	h.Eventually("the first agent sends a JoinRequest", func() error {
		var list v1alpha1.JoinRequestList
		require.NoError(t, h.Client.List(t.Context(), &list))
		for _, request := range list.Items {
			if request.Status.Claim == claim && request.Status.Answer == v1alpha1.AnswerHeld {
				return nil
			}
		}
		return fmt.Errorf("%d requests, none of the first agent", len(list.Items))
	})
	require.Equal(t, blocked.Status.Claim, h.member("twin").Spec.Claim)
	first.stop()
	h.untilCondition("twin", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	h.remove("twin")
	second.stop()
}

func testJoinRequestsAreBlocked(t *testing.T, h *testHub) {
	bootstrap := h.token("held", v1alpha1.JoinTokenSpec{})
	for _, test := range []struct {
		reason  string
		members []*v1alpha1.MemberCluster
		answer  v1alpha1.JoinAnswer
		cause   string
	}{
		{
			"a name of another cluster is not reassigned",
			[]*v1alpha1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "wanted"},
				Spec: v1alpha1.MemberClusterSpec{ClusterID: "another"}}},
			v1alpha1.AnswerHeld, v1alpha1.ReasonNameTaken,
		},
		{
			"a name that was accepted without a cluster ID is reserved",
			[]*v1alpha1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "wanted"},
				Spec: v1alpha1.MemberClusterSpec{Accepted: new(true)}}},
			v1alpha1.AnswerHeld, v1alpha1.ReasonNameReserved,
		},
		{
			"a cluster ID of two MemberClusters is ambiguous",
			[]*v1alpha1.MemberCluster{
				{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.MemberClusterSpec{ClusterID: "id-wanted"}},
				{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: v1alpha1.MemberClusterSpec{ClusterID: "id-wanted"}},
			},
			v1alpha1.AnswerHeld, v1alpha1.ReasonClusterIDTaken,
		},
		{
			"a MemberCluster that an administrator has denied",
			[]*v1alpha1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "announced"},
				Spec: v1alpha1.MemberClusterSpec{ClusterID: "id-wanted", Accepted: new(false)}}},
			v1alpha1.AnswerDenied, v1alpha1.ReasonDenied,
		},
	} {
		testkit.Step(t, test.cause, func() {
			for _, cluster := range test.members {
				h.Create(cluster)
			}
			a := h.newAgent(bootstrap, agent.Options{Name: "wanted"}).start()
			request := h.request("id-wanted", test.answer, test.cause)
			a.stop()
			require.NoError(t, h.Client.Delete(t.Context(), request), test.reason)
			for _, cluster := range test.members {
				h.remove(cluster.Name)
			}
		})
	}
}

// testPreparedMemberIsMatchedByID checks that a MemberCluster that an administrator created is matched by its cluster
// ID, regardless of the requested name.
func testPreparedMemberIsMatchedByID(t *testing.T, h *testHub) {
	bootstrap := h.token("prepared", v1alpha1.JoinTokenSpec{})
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "prepared"},
		Spec:       v1alpha1.MemberClusterSpec{ClusterID: "uid-of-it", Accepted: new(true), HeartbeatPeriodSeconds: 1},
	})
	h.untilCondition("prepared", v1alpha1.ConditionReadyToJoin, metav1.ConditionTrue, v1alpha1.ReasonPrepared)
	h.untilPhase("prepared", v1alpha1.PhaseAccepted)
	a := h.newAgent(bootstrap, agent.Options{Name: "some-other-name", ClusterID: "uid-of-it"}).start()
	h.untilPhase("prepared", v1alpha1.PhaseJoined)
	h.remove("prepared")
	a.stop()
}
