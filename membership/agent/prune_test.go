package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestRestoredHubBlocksPruning checks that an agent detects a restore of its hub by lists that are older than earlier
// observations, and by a lower epoch, and deletes nothing until the hub confirms a later epoch.
func TestRestoredHubBlocksPruning(t *testing.T) {
	membershipOf := func(epoch int64, id string) *v1alpha1.Membership {
		m := &v1alpha1.Membership{}
		if id != "" {
			m.Spec.Hub = &v1alpha1.HubIdentity{ID: id, Epoch: epoch}
		}
		return m
	}
	for _, test := range []struct {
		reason   string
		record   *hubState
		revision string
		sighting sighting
		want     bool // the hub was restored
	}{
		{"the first list",
			nil, "", sighting{state: lifecycle.HubSeen, membership: membershipOf(0, "hub"), revision: "10"}, false},
		{"a later list",
			nil, "10", sighting{state: lifecycle.HubSeen, membership: membershipOf(0, "hub"), revision: "11"}, false},
		{"an older list",
			nil, "10", sighting{state: lifecycle.HubSeen, membership: membershipOf(0, "hub"), revision: "9"}, true},
		{"a list that is older than the record", &hubState{Revision: "10"}, "",
			sighting{state: lifecycle.HubSeen, membership: membershipOf(0, "hub"), revision: "9"}, true},
		{"a lower epoch", &hubState{Epoch: 4}, "10",
			sighting{state: lifecycle.HubSeen, membership: membershipOf(3, "hub"), revision: "11"}, true},
		{"a watch that lags", &hubState{Epoch: 4}, "10",
			sighting{state: lifecycle.HubSeen, membership: membershipOf(3, "hub"), lagging: true}, false},
		{"a hub without epochs", nil, "10",
			sighting{state: lifecycle.HubSeen, membership: membershipOf(0, ""), revision: "9"}, false},
		{"an unreachable hub", nil, "10", sighting{state: lifecycle.HubUnreachable, revision: "9"},
			false},
		{"another restore while the agent waits", &hubState{Required: 5}, "10",
			sighting{state: lifecycle.HubSeen, membership: membershipOf(0, "hub"), revision: "9"}, true},
		{"the agent waits and the hub is not older", &hubState{Required: 5}, "10",
			sighting{state: lifecycle.HubSeen, membership: membershipOf(0, "hub"), revision: "10"}, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			a := &agent{state: persistedState{record: record{Hub: test.record}},
				hub: hubObservation{revision: test.revision}}
			a.hub.noteRevision(test.sighting, a.state.record)
			require.Equal(t, test.want, a.hub.rolledBack)
			a.hub.state, a.hub.membership = test.sighting.state, test.sighting.membership
			blocked := test.want || test.record != nil && test.record.Required > 0 || test.sighting.state != lifecycle.HubSeen
			require.Equal(t, blocked, a.hub.pruneBlocked(a.state.record.requiredEpoch()) != "",
				a.hub.pruneBlocked(a.state.record.requiredEpoch()))
		})
	}
	gone := metav1.Now()
	a := &agent{hub: hubObservation{state: lifecycle.HubSeen,
		membership: &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &gone}}}}
	require.NotEmpty(t, a.hub.pruneBlocked(a.state.record.requiredEpoch()), "the Membership is being deleted")
}

// TestPruneGuard_ProbesTheHub checks that the results of probes are used for two seconds, that the guard detects a
// namespace that is being deleted and a store that is older than before, and that an error permits no deletion.
func TestPruneGuard_ProbesTheHub(t *testing.T) {
	var answer atomic.Pointer[apierrors.StatusError]
	var probes, revision atomic.Int32
	revision.Store(10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprintf(w, `{"apiVersion":"membership.muster.dev/v1alpha1","kind":"MembershipList",`+
				`"metadata":{"resourceVersion":"%d"},"items":[]}`, revision.Load())
			return
		}
		probes.Add(1)
		if r.URL.Query().Get("dryRun") != metav1.DryRunAll {
			t.Errorf("the agent would create a Lease: %s %s", r.Method, r.URL)
		}
		if failure := answer.Load(); failure != nil {
			w.WriteHeader(int(failure.ErrStatus.Code))
			status := failure.ErrStatus
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			_ = json.NewEncoder(w).Encode(status)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"namespace-probe"}}`))
	}))
	t.Cleanup(server.Close)
	member := registered{Server: server.URL, Namespace: "member-east"}
	hub, err := connect(member, nil, func(*rest.Config) {}, heartbeat.BeaterOptions{})
	require.NoError(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	g := &pruneGuard{clock: clock}
	require.ErrorContains(t, g.MayPrune(context.Background()), "not connected")
	g.set(guardState{hub: hub, revision: "9", restored: 3})
	require.EqualValues(t, 3, g.Restored())
	require.NoError(t, g.MayPrune(context.Background()))
	require.NoError(t, g.MayPrune(context.Background()))
	require.EqualValues(t, 1, probes.Load())

	forbidden := apierrors.NewForbidden(corev1.Resource("leases"), pruneProbe, errors.New("no"))
	forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	answer.Store(forbidden)
	require.NoError(t, g.MayPrune(context.Background()), "the last result is used for pruneProbeAge")
	clock.SetTime(clock.Now().Add(pruneProbeAge))
	require.ErrorContains(t, g.MayPrune(context.Background()), "is being deleted")
	answer.Store(apierrors.NewForbidden(corev1.Resource("leases"), pruneProbe, errors.New("no")))
	require.ErrorContains(t, g.MayPrune(context.Background()), "probe the member's namespace")
	answer.Store(nil)
	require.NoError(t, g.MayPrune(context.Background()))
	g.set(guardState{why: "the hub was restored", hub: hub})
	require.ErrorContains(t, g.MayPrune(context.Background()), "the hub was restored")

	// The agent has not observed the restore yet: its next heartbeat is due in a few seconds.
	g.set(guardState{hub: hub, revision: "9"})
	revision.Store(8)
	require.ErrorContains(t, g.MayPrune(context.Background()), "restored to an earlier state")
}

// TestRestoredHub_IsCounted checks that the number of the last restore stays when the hub has confirmed that it is
// consistent, and that each restore increases it, also while the agent waits for the hub to confirm an earlier one.
func TestRestoredHub_IsCounted(t *testing.T) {
	a := &agent{}
	a.state.record.Hub, a.hub.revision = &hubState{Epoch: 4, Revision: "10", Restored: 3}, "12"
	require.Equal(t, &hubState{Epoch: 5, Revision: "12", Restored: 3}, a.hubState(5))
	require.Zero(t, record{}.restoredEpoch())

	for _, test := range []struct {
		reason string
		record *hubState
		shown  int64
		want   int64
	}{
		{"the first restore", nil, 0, 1},
		{"the hub is at a lower epoch", &hubState{Epoch: 4}, 2, 5},
		{"the agent waits, and the hub is at the same epoch", &hubState{Epoch: 2, Required: 5, Restored: 5}, 2, 6},
		{"the hub has begun to confirm", &hubState{Epoch: 2, Required: 5, Restored: 5}, 7, 8},
		{"an earlier restore was confirmed", &hubState{Epoch: 2, Restored: 5}, 2, 6},
	} {
		a.state.record.Hub = test.record
		require.Equal(t, &hubState{Epoch: test.shown, Revision: "12", Required: test.want, Restored: test.want},
			a.restoredState(test.shown), test.reason)
	}
}

// TestRecord_WithoutHubID checks that records and answers of versions before hubs had an identity are still used,
// and end no membership.
func TestRecord_WithoutHubID(t *testing.T) {
	before, err := parseRecord([]byte(`{"version":1,"clusterID":"id","name":"east","forgotten":true,` +
		`"member":{"name":"east","uid":"uid","namespace":"member-east"}}`))
	require.NoError(t, err)
	require.False(t, before.flags().Deregistered, "an earlier version recorded this without a proof of a "+
		"request")
	require.Empty(t, before.hubID())
	for _, bootstrap := range []*registration.Bootstrap{nil, {HubID: "a"}, {HubID: "a", MoveFrom: "b"}} {
		require.False(t, before.strange(bootstrap), "an agent without a hub ID uses any hub")
		require.False(t, before.moves(bootstrap))
	}

	known := before
	known.Member = &registered{Name: "east", UID: "uid", HubID: "b"}
	require.True(t, known.strange(&registration.Bootstrap{HubID: "a"}))
	require.False(t, known.strange(&registration.Bootstrap{}), "a join.yaml of an earlier version has no identity")
	require.False(t, known.strange(&registration.Bootstrap{HubID: "a", MoveFrom: "b"}))
	require.True(t, known.moves(&registration.Bootstrap{HubID: "a", MoveFrom: "b"}))
	require.False(t, known.moves(&registration.Bootstrap{HubID: "a", MoveFrom: "c"}), "the move is from another hub")

	answer := func(answer v1alpha1.JoinAnswer, hub string) *v1alpha1.JoinRequest {
		request := &v1alpha1.JoinRequest{Status: v1alpha1.JoinRequestStatus{Answer: answer}}
		if hub != "" {
			request.Status.Hub = &v1alpha1.HubIdentity{ID: hub}
		}
		return request
	}
	moving := &registration.Bootstrap{HubID: "a", MoveFrom: "b"}
	for _, test := range []struct {
		reason    string
		record    record
		bootstrap *registration.Bootstrap
		answered  *v1alpha1.JoinRequest
		want      lifecycle.JoinRequestState
	}{
		{"a hub of an earlier version answers Forgotten", known, nil, answer("Forgotten", ""),
			lifecycle.JoinRequestHeld},
		{"a hub of an earlier version answers Forgotten to an agent without a hub ID",
			before, nil, answer("Forgotten", ""), lifecycle.JoinRequestHeld},
		{"the agent's own hub answers Deregistered", known, nil, answer(v1alpha1.AnswerDeregistered, "b"),
			lifecycle.JoinRequestDeregistered},
		{"any hub answers Deregistered to an agent without a hub ID", before, nil, answer(v1alpha1.AnswerDeregistered, "a"),
			lifecycle.JoinRequestDeregistered},
		{"another hub answers Deregistered",
			known, nil, answer(v1alpha1.AnswerDeregistered, "a"), lifecycle.JoinRequestDifferentHub},
		{"an answer Deregistered without a hub ID",
			known, nil, answer(v1alpha1.AnswerDeregistered, ""), lifecycle.JoinRequestHeld},
		{"another hub answers Issued", known, nil, answer(v1alpha1.AnswerIssued, "a"),
			lifecycle.JoinRequestDifferentHub},
		{"the new hub answers Issued after a requested move", known, moving, answer(v1alpha1.AnswerIssued, "a"),
			lifecycle.JoinRequestIssued},
		{"the new hub answers Deregistered after a requested move",
			known, moving, answer(v1alpha1.AnswerDeregistered, "a"), lifecycle.JoinRequestHeld},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got, _ := requestState(test.record, test.bootstrap, answer("", ""), test.answered)
			require.Equal(t, test.want, got)
		})
	}
}

// TestRestoredHub_CountedByListsAndHeartbeats checks that an agent counts each restore once, whether a list or a
// heartbeat shows it first, or only one of the two.
func TestRestoredHub_CountedByListsAndHeartbeats(t *testing.T) {
	for _, test := range []struct {
		reason string
		shown  string // l: a list of the Membership shows the restore, h: a heartbeat does, s: the agent records it
		want   int64
	}{
		{"only a list", "ls", 1},
		{"only a heartbeat", "hs", 1},
		{"a list, and a heartbeat before it is recorded", "lhs", 1},
		{"a heartbeat, and then a list", "hls", 1},
		{"two restores that only heartbeats show", "hshs", 2},
		{"two restores that only lists show", "lsls", 2},
		{"both show the first restore, and only a heartbeat the second", "hlshs", 2},
		{"both show the first restore in the other order, and only a heartbeat the second", "lhshs", 2},
		{"both show the first restore, and only a list the second", "hlsls", 2},
	} {
		t.Run(test.reason, func(t *testing.T) {
			revision := 100
			a := &agent{Options: Options{Store: &memory{}}, companions: &companions{}}
			a.state.record.Member, a.state.record.Hub = &registered{HubID: "hub"}, &hubState{}
			list := func() {
				a.hub.state, a.hub.membership = lifecycle.HubSeen, &v1alpha1.Membership{}
				a.hub.membership.Spec.Hub = &v1alpha1.HubIdentity{ID: "hub"}
				a.hub.noteRevision(sighting{state: a.hub.state, membership: a.hub.membership,
					revision: strconv.Itoa(revision)}, a.state.record)
			}
			list()
			for i, shown := range test.shown {
				switch shown {
				case 'l':
					revision--
					list()
				case 'h':
					a.rewound()
					require.Nil(t, a.hub.membership, "the Membership from before the restore is dropped")
				case 's':
					list()
					require.True(t, a.hub.rolledBack, "the restore is detected")
					require.NoError(t, a.countRestore(t.Context(), 0))
					a.rereadRestored()
					kept := test.shown[i-1] == 'h' || i > 1 && test.shown[i-2:i] == "hl"
					require.Equal(t, kept, a.hub.membership != nil,
						"the agent closes a connection from before the restore, once")
				}
			}
			require.Equal(t, test.want, a.state.record.restoredEpoch())
			require.False(t, a.hub.rolledBack)
		})
	}
}
