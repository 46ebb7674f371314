package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// notIssued contains the answers without a credential.
var notIssued = []v1alpha1.JoinAnswer{v1alpha1.AnswerHeld, v1alpha1.AnswerDenied}

// conditions returns the messages of the conditions of a request.
func conditions(request *v1alpha1.JoinRequest) string {
	var all []string
	for _, c := range request.Status.Conditions {
		all = append(all, c.Message)
	}
	return strings.Join(all, "; ")
}

// TestAttack_StolenToken_Reads checks that a bootstrap credential creates JoinRequests and reaches nothing else.
func TestAttack_StolenToken_Reads(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	_, member := s.joinMember("read")
	stolen := s.client(s.token("read-stolen", v1alpha1.JoinTokenSpec{AutoAccept: true}).RESTConfig())
	in := metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "read-stolen"}
	x := metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "x"}
	elsewhere := s.newRequester(s.hub.Bootstrap(), "x", "id-x").inNamespace("default")
	s.requireForbidden(stolen, map[string]attempt{
		"list the requests of others":         listing(&v1alpha1.JoinRequestList{}, membership.RegistrationNamespace),
		"read its JoinToken":                  reading(&v1alpha1.JoinToken{ObjectMeta: in}),
		"read Secrets":                        reading(&corev1.Secret{ObjectMeta: in}),
		"list Secrets":                        listing(&corev1.SecretList{}, membership.RegistrationNamespace),
		"list members":                        listing(&v1alpha1.MemberClusterList{}, ""),
		"list namespaces":                     listing(&corev1.NamespaceList{}, ""),
		"read a member's Membership":          listing(&v1alpha1.MembershipList{}, member.Status.Namespace),
		"create a MemberCluster":              creation(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
		"accept a member":                     changing(member, changeClaim),
		"create a JoinToken":                  creation(&v1alpha1.JoinToken{ObjectMeta: x}),
		"write a JoinRequest elsewhere":       creation(elsewhere),
		"use the connections of push members": listing(&corev1.SecretList{}, membership.ConnectionNamespace),
	})
}

// inNamespace returns the request in another namespace.
func (a *requester) inNamespace(namespace string) *v1alpha1.JoinRequest {
	request := a.request.DeepCopy()
	request.Namespace = namespace
	return request
}

// TestAttack_StolenToken_NameSquatting checks that a stolen token, even with automatic acceptance, gets neither
// the name of a member nor a name that an administrator has reserved, and that its request for a new name does not keep
// the rightful cluster out.
func TestAttack_StolenToken_NameSquatting(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	agent, member := s.joinMember("squatted")
	open := s.token("squat-open", v1alpha1.JoinTokenSpec{AutoAccept: true})
	waiting := s.token("squat-waiting", v1alpha1.JoinTokenSpec{})

	request := s.request(s.newRequester(open, "squatted", "id-thief"), notIssued...)
	require.Nil(t, request.Status.Credential)
	require.Contains(t, conditions(request), "belongs to another cluster")
	now := s.member("squatted")
	require.Equal(t, member.Spec, now.Spec, "the member is not changed")
	require.NoError(t, agent.List(t.Context(), &v1alpha1.MembershipList{}, client.InNamespace(member.Status.Namespace)),
		"the agent of the member keeps its access")

	s.createTemporary(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "reserved"},
		Spec: v1alpha1.MemberClusterSpec{Accepted: new(true)}})
	request = s.request(s.newRequester(waiting, "reserved", "id-thief-2"), notIssued...)
	require.Nil(t, request.Status.Credential)
	require.Empty(t, s.member("reserved").Spec.Claim)

	// The thief was first. The administrator denies it, and the rightful cluster joins with its own name.
	s.request(s.newRequester(waiting, "wanted", "id-thief-3"), v1alpha1.AnswerHeld)
	s.eventually("the administrator removes the request of the thief", func() error {
		return s.admin.Delete(t.Context(), s.member("wanted"))
	})
	s.eventually("the name is free", func() error {
		err := s.admin.Get(t.Context(), client.ObjectKey{Name: "wanted"}, &v1alpha1.MemberCluster{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the name is in use: %w", err)
	})
	_, wanted := s.joinMember("wanted")
	require.Equal(t, "id-wanted", wanted.Spec.ClusterID)
}

// TestAttack_StolenToken_GuessedClusterID checks that a stolen token with the cluster ID of a member, which is no
// secret, gets neither this member nor its credential.
func TestAttack_StolenToken_GuessedClusterID(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	agent, member := s.joinMember("guessed")
	open := s.token("guess-open", v1alpha1.JoinTokenSpec{AutoAccept: true})
	bound := s.token("guess-bound", v1alpha1.JoinTokenSpec{AutoAccept: true, ClusterID: "id-other"})
	for name, a := range map[string]*requester{
		"the member's name and ID": s.newRequester(open, "guessed", member.Spec.ClusterID),
		"the member's ID":          s.newRequester(open, "guessed-thief", member.Spec.ClusterID),
		"the member's UID": s.newRequester(open, "guessed-thief", member.Spec.ClusterID,
			func(r *v1alpha1.JoinRequestSpec) { r.MemberUID = member.UID }),
		"the token of another cluster": s.newRequester(bound, "guessed-thief-2", "id-thief"),
	} {
		request := s.request(a, notIssued...)
		require.Nil(t, request.Status.Credential, name)
		require.Equal(t, member.Spec, s.member("guessed").Spec, name)
	}
	require.NoError(t, agent.List(t.Context(), &v1alpha1.MembershipList{}, client.InNamespace(member.Status.Namespace)))
	for _, name := range []string{"guessed-thief", "guessed-thief-2"} {
		require.True(t, apierrors.IsNotFound(s.admin.Get(t.Context(), client.ObjectKey{Name: name},
			&v1alpha1.MemberCluster{})), "no member is created")
	}
}

// TestAttack_StolenToken_LabelSteering checks that a request with a label by which a ClusterSet selects is denied, so
// that the thief does not receive the objects that tenants of the set distribute.
func TestAttack_StolenToken_LabelSteering(t *testing.T) {
	s := newScene(t, assembly.HubOptions{})
	set := &tenancyv1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "steering"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"attack.example.com/team": "payments"}}
	s.createTemporary(set)
	s.eventually("the hub has observed the set", func() error {
		if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Status.ObservedGeneration == 0 {
			return fmt.Errorf("the status is %+v", set.Status)
		}
		return nil
	})
	open := s.token("steer-open", v1alpha1.JoinTokenSpec{AutoAccept: true})
	with := func(value string) func(*v1alpha1.JoinRequestSpec) {
		return func(r *v1alpha1.JoinRequestSpec) { r.Labels = map[string]string{"attack.example.com/team": value} }
	}
	for _, value := range []string{"payments", "other"} {
		request := s.request(s.newRequester(open, "steered", "id-steered-"+value, with(value)), v1alpha1.AnswerDenied)
		require.Contains(t, conditions(request), "spec.allowedLabels")
	}
	require.True(t, apierrors.IsNotFound(s.admin.Get(t.Context(), client.ObjectKey{Name: "steered"},
		&v1alpha1.MemberCluster{})))

	// The labels of a request have no effect on a member that exists.
	agent, member := s.joinMember("steered-later")
	before := member.DeepCopy()
	s.request(s.newRequester(open, "steered-later", member.Spec.ClusterID, with("payments")), notIssued...)
	require.Equal(t, before.Labels, s.member("steered-later").Labels)
	s.requireForbidden(agent, map[string]attempt{
		"an agent changes the labels of its member": changing(s.member("steered-later"), func(m *v1alpha1.MemberCluster) {
			metav1.SetMetaDataLabel(&m.ObjectMeta, "attack.example.com/team", "payments")
		}),
	})
}

// TestAttack_StolenToken_Flood checks that a stolen token fills the hub with a bounded number of requests, and that the
// members of the hub are not affected.
func TestAttack_StolenToken_Flood(t *testing.T) {
	const limit = 12
	s := newScene(t, assembly.HubOptions{Membership: hub.Options{MaxRequests: limit}})
	agent, member := s.joinMember("flooded")
	s.eventually("the quota is that of this hub", func() error {
		var quotas corev1.ResourceQuotaList
		if err := s.admin.List(t.Context(), &quotas, client.InNamespace(membership.RegistrationNamespace)); err != nil {
			return err
		}
		for i := range quotas.Items {
			for name, quantity := range quotas.Items[i].Status.Hard {
				if strings.Contains(string(name), "joinrequests") && quantity.Value() == limit {
					return nil
				}
			}
		}
		return fmt.Errorf("the quotas are %+v", quotas.Items)
	})
	stolen := s.token("flood-stolen", v1alpha1.JoinTokenSpec{AutoAccept: true})
	made := 0
	for i := 0; ; i++ {
		require.Less(t, i, 10*limit, "the API server accepts every request")
		a := s.newRequester(stolen, fmt.Sprintf("flood-%d", i), fmt.Sprintf("id-flood-%d", i))
		err := s.send(a)
		if apierrors.IsForbidden(err) {
			require.ErrorContains(t, err, "exceeded quota")
			break
		}
		require.NoError(t, err)
		t.Cleanup(func() { s.remove(a.request.Spec.Name) })
		s.waitForAnswer(a, v1alpha1.AnswerIssued, v1alpha1.AnswerHeld, v1alpha1.AnswerDenied)
		made++
	}
	require.LessOrEqual(t, made, limit)
	require.NoError(t, agent.List(t.Context(), &v1alpha1.MembershipList{}, client.InNamespace(member.Status.Namespace)))
}
