package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// strip deletes an object without its finalizers, like a restore of etcd or an administrator who removes finalizers.
func (h *testHub) strip(object client.Object) {
	h.T.Helper()
	ctx, key := h.T.Context(), client.ObjectKeyFromObject(object)
	h.Eventually("the object has no finalizers", func() error {
		if err := h.Client.Get(ctx, key, object); err != nil {
			return client.IgnoreNotFound(err)
		}
		object.SetFinalizers(nil)
		return h.Client.Update(ctx, object)
	})
	require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(ctx, object)))
	h.Eventually("the object is deleted", func() error {
		err := h.Client.Get(ctx, key, object)
		return orError(apierrors.IsNotFound(err), "%v", err)
	})
}

// rejoined waits until the agent has joined the MemberCluster that replaced another one.
func (h *testHub) rejoined(name string, before types.UID) *v1alpha1.MemberCluster {
	h.T.Helper()
	cluster := &v1alpha1.MemberCluster{}
	h.Eventually("member "+name+" has joined again", func() error {
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		self := &v1alpha1.Membership{}
		if err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: "member-" + name, Name: membership.MembershipName},
			self); err != nil {
			return err
		}
		joined := cluster.Status.Phase == v1alpha1.PhaseJoined && cluster.UID != before &&
			self.Spec.MemberUID == cluster.UID && self.Spec.Claim == cluster.Spec.Claim
		return orError(joined, "%s: %s", cluster.Status.Phase, messages(cluster.Status.Conditions))
	})
	return h.untilCondition(name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
}

// registeredAs waits until the agent has recorded that it is registered with a UID.
func (a *testAgent) registeredAs(uid types.UID) {
	a.t.Helper()
	mustertest.Eventually(a.t, timeLimit, "the agent is registered as "+string(uid), func() error {
		record, err := a.store.Load(context.Background())
		if err != nil {
			return err
		}
		return orError(bytes.Contains(record, []byte(`"uid":"`+string(uid)+`"`)), "the record has another UID")
	})
}

// recreate replaces a MemberCluster by one with the same spec and another UID, while no hub runs.
func (h *testHub) recreate(name string, change func(*v1alpha1.MemberClusterSpec)) *v1alpha1.MemberCluster {
	h.T.Helper()
	before := h.member(name)
	h.strip(before.DeepCopy())
	created := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: before.Labels}, Spec: before.Spec}
	if change != nil {
		change(&created.Spec)
	}
	h.Create(created)
	return before
}

// deleteNamespace deletes the namespace of a member, and waits until it is gone.
func (h *testHub) deleteNamespace(name string) {
	h.T.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-" + name}}
	require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(h.T.Context(), namespace)))
	h.Eventually("the namespace is removed", func() error {
		err := h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(namespace), namespace)
		return orError(apierrors.IsNotFound(err), "%v", err)
	})
}

// untilDelivered waits until the hub has removed the request of a cluster, since its agent has joined.
func (h *testHub) untilDelivered(clusterID string) {
	h.T.Helper()
	h.Eventually("the request of "+clusterID+" is removed", func() error {
		var list v1alpha1.JoinRequestList
		if err := h.Client.List(h.T.Context(), &list, client.InNamespace(membership.RegistrationNamespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Spec.ClusterID == clusterID {
				return errors.New("the object exists")
			}
		}
		return nil
	})
}

// printed returns the row that kubectl get prints for an object.
func (h *testHub) printed(resource string, object client.Object) []any {
	h.T.Helper()
	config := rest.CopyConfig(h.Config)
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(newScheme()).WithoutConversion()
	restClient, err := rest.RESTClientFor(config)
	require.NoError(h.T, err)
	body, err := restClient.Get().Namespace(object.GetNamespace()).Resource(resource).Name(object.GetName()).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(h.T.Context()).Raw()
	require.NoError(h.T, err)
	table := &metav1.Table{}
	require.NoError(h.T, json.Unmarshal(body, table))
	require.Len(h.T, table.Rows, 1)
	return table.Rows[0].Cells
}

// TestAdoption_MemberClusterWithAnotherUID checks that an agent continues with a MemberCluster that was restored or
// created again, and cleans up nothing on the member: the claim and the cluster ID identify the member, and not the
// UID.
func TestAdoption_MemberClusterWithAnotherUID(t *testing.T) {
	for name, test := range map[string]struct {
		method      registration.Method
		noNamespace bool
		change      func(*v1alpha1.MemberClusterSpec)
	}{
		"adopted-token": {},
		"adopted-csr":   {method: csr.Method{}},
		"adopted-wiped": {noNamespace: true},
		"adopted-no-claim": {noNamespace: true,
			change: func(s *v1alpha1.MemberClusterSpec) { s.Claim, s.Credential = "", "" }},
		"adopted-no-id": {noNamespace: true,
			change: func(s *v1alpha1.MemberClusterSpec) { s.ClusterID, s.Credential = "", "" }},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h := startHub(t, newMemory(t), hub.Options{})
				bootstrap := h.token(name, v1alpha1.JoinTokenSpec{})
				var cleaned cleaner
				a := h.joined(bootstrap,
					agent.Options{Name: name, Method: test.method, Cleaners: []membership.LeaveGate{cleaned.gate()}})
				h.untilDelivered("id-" + name)
				h.stop()
				before := h.recreate(name, test.change)
				if test.noNamespace {
					h.deleteNamespace(name)
				}
				h = startHub(t, h.plane, hub.Options{})
				after := h.rejoined(name, before.UID)
				a.registeredAs(after.UID)
				require.Equal(t, "id-"+name, after.Spec.ClusterID)
				require.Zero(t, cleaned.calls.Load(), "the agent cleaned up without a request")

				h.remove(name)
				h.Eventually("the agent cleans up after a requested leave",
					func() error { return orError(cleaned.calls.Load() > 0, "the cleaner was not called") })
				a.stop()
			})
		})
	}
}

// TestAdoption_LostMemberClusterNeedsAdministrator checks that the agent of a MemberCluster that the hub has lost,
// without a record of a leave, waits for an administrator.
func TestAdoption_LostMemberClusterNeedsAdministrator(t *testing.T) {
	testkit.Virtual(t, testAdoptionLostMemberClusterNeedsAdministrator)
}

func testAdoptionLostMemberClusterNeedsAdministrator(t *testing.T) {
	const name = "lost"
	h := startHub(t, newMemory(t), hub.Options{})
	bootstrap := h.token(name, v1alpha1.JoinTokenSpec{AutoAccept: true})
	var cleaned cleaner
	a := h.joined(bootstrap, agent.Options{Name: name, Cleaners: []membership.LeaveGate{cleaned.gate()}})
	h.untilDelivered("id-" + name)
	h.stop()
	before := h.member(name)
	h.strip(before.DeepCopy())
	h.deleteNamespace(name)

	h = startHub(t, h.plane, hub.Options{})
	request := h.request("id-"+name, v1alpha1.AnswerHeld, v1alpha1.ReasonUnknownMember)
	require.Equal(t, before.UID, request.Spec.MemberUID)
	require.NotEmpty(t, request.Spec.HubID)
	require.Equal(t, request.Spec.HubID, request.Status.Hub.ID)
	require.Subset(t, h.printed("joinrequests", request), []any{"Held", "UnknownMember"}, "kubectl get shows that "+
		"the hub does not know the member of the agent")
	require.Nil(t, h.member(name).Spec.Accepted, "an AutoAccept token does not accept a cluster that "+
		"may have been removed")
	h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	a.registeredAs(h.rejoined(name, before.UID).UID)
	require.Zero(t, cleaned.calls.Load(), "the agent cleaned up without a request")
	h.remove(name)
	a.stop()
}

// TestAdoption_AnotherHubEndsNoMembership checks that a join.yaml of another hub changes nothing on a member that its
// own hub rejects, until an administrator requests a move.
func TestAdoption_AnotherHubEndsNoMembership(t *testing.T) {
	testkit.Virtual(t, testAdoptionAnotherHubEndsNoMembership)
}

func testAdoptionAnotherHubEndsNoMembership(t *testing.T) {
	const name, otherNamespace = "rejected", "other-registration"
	p := newMemory(t)
	h := startHub(t, p, hub.Options{})
	own := h.token(name, v1alpha1.JoinTokenSpec{})
	require.NotEmpty(t, own.HubID)
	var current atomic.Pointer[registration.Bootstrap]
	current.Store(own)
	var cleaned cleaner
	options := agent.Options{Name: name, Cleaners: []membership.LeaveGate{cleaned.gate()}}
	options.Bootstrap = agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
		return current.Load(),
			nil
	})
	a := h.joined(nil, options)
	uid := h.member(name).UID
	h.untilDelivered("id-" + name)

	// The current hub rejects the agent: the hub has lost all objects.
	h.stop()
	h.strip(h.member(name))
	h.deleteNamespace(name)
	require.NoError(t, client.IgnoreAlreadyExists(h.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherNamespace}})))
	startOther(t, h.plane, hub.Options{RegistrationNamespace: otherNamespace, NamespacePrefix: "their-"})
	theirs := *h.tokenIn(otherNamespace, name, v1alpha1.JoinTokenSpec{AutoAccept: true})
	require.NotEqual(t, own.HubID, theirs.HubID)

	// Without a hub ID, as in a join.yaml of an older hub, the other hub rejects the request.
	unnamed := theirs
	unnamed.HubID = ""
	current.Store(&unnamed)
	request := h.requestIn(otherNamespace, "id-"+name, v1alpha1.AnswerHeld, v1alpha1.ReasonDifferentHub)
	require.Equal(t, uid, request.Spec.MemberUID)

	current.Store(&theirs)
	h.Eventually("the agent reports that the join.yaml is for another hub", func() error {
		return orError(a.rejectedWith(theirs.HubID), "the agent is %s: %s", a.step().Phase, a.step().Message)
	})
	a.registeredAs(uid)
	var clusters v1alpha1.MemberClusterList
	require.NoError(t, h.Client.List(t.Context(), &clusters))
	require.Empty(t, clusters.Items, "the other hub creates no MemberCluster")

	// The hub removes the request after a minute. The request for the move has the same name.
	require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), request)))
	moving := theirs
	moving.MoveFrom = own.HubID
	current.Store(&moving)
	after := h.untilCondition(name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	a.registeredAs(after.UID)
	record, err := a.store.Load(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(record), `"move":{"from":"`+own.HubID+`","to":"`+theirs.HubID)
	require.Zero(t, cleaned.calls.Load(), "the agent cleaned up without a request")
	h.remove(name)
	a.stop()
}

// startOther runs another hub on the same API server, as an administrator.
func startOther(t testing.TB, p apiServer, options hub.Options) {
	t.Helper()
	address(p, &options)
	managerOptions := manager.Options{Scheme: newScheme(), Logger: testLogger(t, "other hub")}
	stop := mustertest.StartManager(t, p.Config(), managerOptions,
		func(mgr manager.Manager) error { return hub.SetupWithManager(mgr, options) })
	whenIdle(t, p, stop) // the manager stops with the test
}

// TestTombstones_Limit checks that the records of members that left are bounded, and expire.
func TestTombstones_Limit(t *testing.T) { testkit.Virtual(t, testTombstonesLimit) }

func testTombstonesLimit(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{MaxTombstones: 2})
	count := func() int {
		var list corev1.ConfigMapList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(membership.RegistrationNamespace),
			client.HasLabels{membership.TombstoneLabel}))
		return len(list.Items)
	}
	for _, name := range []string{"bounded-a", "bounded-b", "bounded-c", "bounded-d"} {
		h.Create(&v1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.MemberClusterSpec{ClusterID: "id-" + name, Accepted: new(true)},
		})
		h.untilPhase(name, v1alpha1.PhaseAccepted)
		at, _, err := hub.LastRemoval(t.Context(), h.Client, membership.RegistrationNamespace, name)
		require.NoError(t, err)
		require.True(t, at.IsZero(), "a member that exists was not removed")
		h.remove(name)
		at, version, err := hub.LastRemoval(t.Context(), h.Client, membership.RegistrationNamespace, name)
		require.NoError(t, err)
		require.False(t, at.IsZero())
		require.NotEmpty(t, version)
	}
	require.Equal(t, 2, count())
	h.stop()
	startHub(t, h.plane, hub.Options{MaxTombstones: 1})
	h.Eventually("the hub keeps at most MaxTombstones",
		func() error { return orError(count() == 1, "%d tombstones exist", count()) })
}

// TestHubIdentity checks that two hubs that start concurrently use one identity, that each start increases the epoch,
// and that a ConfigMap that was deleted by mistake is restored from the Memberships.
func TestHubIdentity(t *testing.T) { testkit.Virtual(t, testHubIdentity) }

func testHubIdentity(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{})
	read := func() (id, epoch string) {
		stored := &corev1.ConfigMap{}
		h.Eventually("the hub has an identity", func() error {
			return h.Client.Get(t.Context(),
				client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: membership.HubConfigMap}, stored)
		})
		return stored.Data["id"], stored.Data["epoch"]
	}
	number := func(epoch string) int {
		n, err := strconv.Atoi(epoch)
		require.NoError(t, err)
		return n
	}
	id, first := read()
	require.NotEmpty(t, id)
	bootstrap := h.token("identity", v1alpha1.JoinTokenSpec{})
	require.Equal(t, id, bootstrap.HubID)
	a := h.joined(bootstrap, agent.Options{Name: "identity"})
	h.stop()
	h = startHub(t, h.plane, hub.Options{})
	h.Eventually("the epoch is increased", func() error {
		same, second := read()
		return orError(same == id && number(second) > number(first), "%s at %s, before %s at %s", same, second, id, first)
	})
	h.stop()
	require.NoError(t, h.Client.Delete(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace,
			Name: membership.HubConfigMap}}))
	h = startHub(t, h.plane, hub.Options{})
	same, _ := read()
	require.Equal(t, id, same)
	h.remove("identity")
	a.stop()
}
