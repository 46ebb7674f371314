package identity

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestIssuer_Subject(t *testing.T) {
	const group = rbacv1.GroupName
	for _, test := range []struct {
		reason string
		named  *rbacv1.Subject
		want   rbacv1.Subject // empty: ErrMissing
	}{
		{"a user", &rbacv1.Subject{Kind: "User", Name: "oidc:east", APIGroup: group},
			rbacv1.Subject{Kind: "User", Name: "oidc:east", APIGroup: group}},
		{"a user without an API group", &rbacv1.Subject{Kind: "User", Name: "oidc:east"},
			rbacv1.Subject{Kind: "User", Name: "oidc:east", APIGroup: group}},
		{"a group of the agent", &rbacv1.Subject{Kind: "Group", Name: "east-agents"},
			rbacv1.Subject{Kind: "Group", Name: "east-agents", APIGroup: group}},
		{"a ServiceAccount of the hub",
			&rbacv1.Subject{Kind: "ServiceAccount", Name: "east", Namespace: "agents", APIGroup: group},
			rbacv1.Subject{Kind: "ServiceAccount", Name: "east", Namespace: "agents"}},
		{"a ServiceAccount as a user", &rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:agents:east"},
			rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:agents:east", APIGroup: group}},
		{"no subject", nil, rbacv1.Subject{}},
		{"no name", &rbacv1.Subject{Kind: "User"}, rbacv1.Subject{}},
		{"the group of all authenticated users", &rbacv1.Subject{Kind: "Group", Name: "system:authenticated"},
			rbacv1.Subject{}},
		{"the group of all unauthenticated users", &rbacv1.Subject{Kind: "Group", Name: "system:unauthenticated"},
			rbacv1.Subject{}},
		{"the group of administrators", &rbacv1.Subject{Kind: "Group", Name: "system:masters"}, rbacv1.Subject{}},
		{"the group of all ServiceAccounts", &rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts"},
			rbacv1.Subject{}},
		{"the group of the ServiceAccounts of a namespace",
			&rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:default"}, rbacv1.Subject{}},
		{"the anonymous user", &rbacv1.Subject{Kind: "User", Name: "system:anonymous"}, rbacv1.Subject{}},
		{"a component of Kubernetes", &rbacv1.Subject{Kind: "User", Name: "system:kube-scheduler"}, rbacv1.Subject{}},
		{"a ServiceAccount without a namespace", &rbacv1.Subject{Kind: "ServiceAccount", Name: "east"}, rbacv1.Subject{}},
		{"an unknown kind", &rbacv1.Subject{Kind: "Robot", Name: "east"}, rbacv1.Subject{}},
	} {
		member := membership.Member{Name: "east", Identity: test.named}
		got, err := Issuer{}.Subject(member)
		require.Equal(t, test.want == rbacv1.Subject{}, errors.Is(err, ErrMissing), "%s: %v", test.reason, err)
		if err != nil {
			require.ErrorContains(t, err, "east", test.reason)
			require.NotErrorAsf(t, err, new(*membership.InvalidError), "%s: the request of the agent is valid", test.reason)
			continue
		}
		require.Equal(t, test.want, got, test.reason)
	}
}

func TestIssuer_Issue(t *testing.T) {
	member := membership.Member{Name: "east", Identity: &rbacv1.Subject{Kind: "User", Name: "oidc:east"}}
	request, private, err := Method{}.Request(nil, nil)
	require.NoError(t, err)
	require.Empty(t, private)
	credential, err := Issuer{}.Issue(t.Context(), member, request)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.Credential{Type: v1alpha1.CredentialIdentity}, credential)
	material, err := Method{}.Open(nil, nil, credential)
	require.NoError(t, err)
	require.Equal(t, registration.Material{}, material)

	_, err = Method{}.Open(nil, nil, v1alpha1.Credential{Type: v1alpha1.CredentialToken})
	require.ErrorContains(t, err, "type", "the agent rejects a credential of another type")
	_, err = Issuer{}.Issue(t.Context(), membership.Member{Name: "west"}, request)
	require.ErrorIs(t, err, ErrMissing)
	_, err = Issuer{}.Issue(t.Context(), member, v1alpha1.CredentialRequest{Type: v1alpha1.CredentialToken})
	require.ErrorAs(t, err, new(*membership.InvalidError), "the issuer rejects a request of another type")
}
