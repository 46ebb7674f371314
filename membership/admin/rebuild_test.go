package admin

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// fakeCluster is a cluster in memory.
func fakeCluster(t *testing.T, side Side, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &cluster{Client: c, side: side, config: &rest.Config{Host: "https://" + string(side)}}
}

func hubConfigMap(id, epoch string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: membership.HubConfigMap},
		Data:       map[string]string{membership.HubIDKey: id, membership.HubEpochKey: epoch},
	}
}

func rebuilding(hub *cluster, members ...*agent.Registration) *rebuild {
	return &rebuild{RebuildOptions: RebuildOptions{RegistrationNamespace: membership.RegistrationNamespace}, hub: hub,
		members: members}
}

// TestRebuild_InvalidOptions checks that invalid options are rejected before any cluster is contacted.
func TestRebuild_InvalidOptions(t *testing.T) {
	var invalid *membership.InvalidError
	require.ErrorAs(t, Rebuild(t.Context(), &rest.Config{}, RebuildOptions{}), &invalid)
	require.Equal(t, "Members", invalid.Field)
	require.ErrorContains(t, Rebuild(t.Context(), nil, RebuildOptions{Members: []*rest.Config{{}}}),
		"no config for the hub")
}

// TestMove_InvalidOptions checks that a move requires the credential of a hub that has an identity.
func TestMove_InvalidOptions(t *testing.T) {
	for _, bootstrap := range []*registration.Bootstrap{nil, {}} {
		var invalid *membership.InvalidError
		require.ErrorAs(t, Move(t.Context(), &rest.Config{}, bootstrap, RegisterOptions{}), &invalid)
		require.Equal(t, "bootstrap", invalid.Field)
	}
	require.ErrorContains(t, Move(t.Context(), nil, &registration.Bootstrap{HubID: "hub"}, RegisterOptions{}),
		"no config for the member")
}

// TestRegistrationOf_NotRegistered checks that a cluster without an agent's record is not a member.
func TestRegistrationOf_NotRegistered(t *testing.T) {
	_, err := registrationOf(t.Context(), fakeCluster(t, Member), agent.DefaultNamespace, "")
	require.ErrorIs(t, err, agent.ErrNotRegistered)
	require.ErrorContains(t, err, "https://member")
}

// TestRebuild_Identity checks that a hub gets the identity of the lost one with a later epoch, and that a hub with
// another identity is rejected and not changed.
func TestRebuild_Identity(t *testing.T) {
	members := []*agent.Registration{{Name: "a", HubID: "lost", HubEpoch: 3}, {Name: "b", HubID: "lost", HubEpoch: 7}}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		want    *corev1.ConfigMap
		err     string
	}{
		{"an empty hub", nil, hubConfigMap("lost", "8"), ""},
		{"a repeated call", []client.Object{hubConfigMap("lost", "8")}, hubConfigMap("lost", "8"), ""},
		{"an epoch earlier than that of a member", []client.Object{hubConfigMap("lost", "2")}, hubConfigMap("lost", "8"), ""},
		{"an epoch that is not a number", []client.Object{hubConfigMap("lost", "x")}, hubConfigMap("lost", "8"), ""},
		{"a hub with another identity", []client.Object{hubConfigMap("other", "1")}, hubConfigMap("other", "1"),
			"has the identity other"},
	} {
		hub := fakeCluster(t, Hub, test.objects...)
		_, err := rebuilding(hub, members...).identify(t.Context())
		if test.err == "" {
			require.NoError(t, err, test.reason)
		} else {
			require.ErrorContains(t, err, test.err, test.reason)
		}
		stored := &corev1.ConfigMap{}
		require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(test.want), stored), test.reason)
		require.Equal(t, test.want.Data, stored.Data, test.reason)
	}
}

// TestRebuild_SameHub checks that members of different hubs are rejected, and members whose hub had no identity.
func TestRebuild_SameHub(t *testing.T) {
	member := func(name, hub string) *agent.Registration { return &agent.Registration{Name: name, HubID: hub} }
	for _, test := range []struct {
		reason  string
		members []*agent.Registration
		err     string
	}{
		{"one hub", []*agent.Registration{member("a", "lost"), member("b", "lost")}, ""},
		{"different hubs", []*agent.Registration{member("a", "lost"), member("b", "lost"), member("c", "other")},
			"member a is of hub lost, and member c is of hub other"},
		{"a hub without an identity", []*agent.Registration{member("a", "lost"), member("b", "")},
			"member b: its hub had no identity"},
		{"no hub with an identity", []*agent.Registration{member("a", "")}, "member a: its hub had no identity"},
	} {
		_, err := rebuilding(fakeCluster(t, Hub), test.members...).sameHub()
		if test.err == "" {
			require.NoError(t, err, test.reason)
		} else {
			require.ErrorContains(t, err, test.err, test.reason)
		}
	}
}

// TestRebuild_Members checks that existing members are not changed, regardless of their names, and that the name of
// another cluster is an error.
func TestRebuild_Members(t *testing.T) {
	existing := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "renamed"}}
	existing.Spec.Claim, existing.Spec.ClusterID = "claim", "id"
	hub := fakeCluster(t, Hub, existing)
	for _, test := range []struct {
		reason       string
		registration agent.Registration
		detail       string
		err          error
	}{
		{"a member with the same claim", agent.Registration{Name: "a", Claim: "claim", ClusterID: "another"},
			"the MemberCluster exists, with the name renamed", nil},
		{"a member with the same cluster ID", agent.Registration{Name: "a", Claim: "another", ClusterID: "id"},
			"the MemberCluster exists, with the name renamed", nil},
		{"the name of another cluster", agent.Registration{Name: "renamed", Claim: "another", ClusterID: "another"}, "",
			ErrNameTaken},
		{"a missing member", agent.Registration{Name: "b", Claim: "b", ClusterID: "b"}, "", nil},
	} {
		detail, err := rebuilding(hub).create(t.Context(), &test.registration)
		require.ErrorIs(t, err, test.err, test.reason)
		require.Equal(t, test.detail, detail, test.reason)
	}
	created := &v1alpha1.MemberCluster{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "b"}, created))
	require.True(t, *created.Spec.Accepted)
	require.Equal(t, []string{membership.Finalizer}, created.Finalizers)
}
