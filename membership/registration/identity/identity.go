package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ErrMissing means that spec.identity of the MemberCluster does not name the subject of the agent. The JoinRequest is
// pending until an administrator sets it. The error that wraps ErrMissing contains the expected subject.
var ErrMissing = errors.New("the MemberCluster's spec.identity does not name the agent's subject")

// Issuer binds existing identities on the hub. It needs no permission and may be used concurrently.
type Issuer struct{}

var _ membership.Issuer = Issuer{}

// Subject returns the subject in spec.identity. It returns [ErrMissing] if none is set, or if the subject cannot belong
// to a single member: the users and groups of Kubernetes itself, except ServiceAccounts, have many members or too many
// permissions.
func (Issuer) Subject(member membership.Member) (rbacv1.Subject, error) {
	if member.Identity == nil {
		return rbacv1.Subject{},
			fmt.Errorf("%w: set it on MemberCluster %s to the subject that its agent authenticates as", ErrMissing, member.Name)
	}
	subject, problem := normal(*member.Identity)
	if problem != "" {
		return rbacv1.Subject{},
			fmt.Errorf("%w: %s %q of MemberCluster %s %s", ErrMissing, subject.Kind, subject.Name, member.Name, problem)
	}
	return subject, nil
}

// Issue returns an empty credential of type Identity. It has no expiration, because the expiration is unknown to the
// hub.
func (i Issuer) Issue(_ context.Context, member membership.Member,
	request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	if request.Type != v1alpha1.CredentialIdentity {
		return v1alpha1.Credential{}, &membership.InvalidError{Field: "type", Problem: fmt.Sprintf(
			"is %q, and this issuer's is %q", request.Type, v1alpha1.CredentialIdentity)}
	}
	if _, err := i.Subject(member); err != nil {
		return v1alpha1.Credential{}, err
	}
	return v1alpha1.Credential{Type: v1alpha1.CredentialIdentity}, nil
}

// normal returns the subject with the fields that its kind determines, and a problem if it is invalid.
func normal(subject rbacv1.Subject) (_ rbacv1.Subject, problem string) {
	const reserved, accounts = "system:", "system:serviceaccount:"
	if subject.Name == "" {
		return subject, "has no name"
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		subject.APIGroup = ""
		if subject.Namespace == "" {
			return subject, "has no namespace"
		}
		return subject, ""
	case rbacv1.UserKind:
		if strings.HasPrefix(subject.Name, reserved) && !strings.HasPrefix(subject.Name, accounts) {
			return subject, "is a user of Kubernetes itself: name the agent's own"
		}
	case rbacv1.GroupKind:
		if strings.HasPrefix(subject.Name, reserved) {
			return subject, "is a group of Kubernetes itself: name one that contains only the agent"
		}
	default:
		return subject, "must be of kind User, Group or ServiceAccount"
	}
	subject.APIGroup, subject.Namespace = rbacv1.GroupName, ""
	return subject, ""
}

// Method is used by the agent. It only requests that its identity is bound.
type Method struct{}

var _ registration.Method = Method{}

// Type returns Identity.
func (Method) Type() v1alpha1.CredentialType { return v1alpha1.CredentialIdentity }

// Request returns a request without content and no private data. The lifetime has no effect.
func (Method) Request(*registration.ClaimKey, *int32) (v1alpha1.CredentialRequest, []byte, error) {
	return v1alpha1.CredentialRequest{Type: v1alpha1.CredentialIdentity}, nil, nil
}

// Open returns zero material: the agent continues to use its own credential.
func (Method) Open(_ *registration.ClaimKey, _ []byte, credential v1alpha1.Credential) (registration.Material, error) {
	if credential.Type != v1alpha1.CredentialIdentity {
		return registration.Material{},
			fmt.Errorf("confirm the identity: the hub issued a credential of type %q", credential.Type)
	}
	return registration.Material{}, nil
}
