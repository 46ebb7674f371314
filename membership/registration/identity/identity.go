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

// ErrMissing says that an administrator has to name the member's subject first, or has to name another: the
// request is to be held until then. The error that wraps it says what to do.
var ErrMissing = errors.New("the MemberCluster's spec.identity does not name the agent's subject")

// Issuer is the hub's side. It needs no permission and may be used concurrently.
type Issuer struct{}

var _ membership.Issuer = Issuer{}

// Subject returns the one that the administrator named, or [ErrMissing] when none is named that could be one
// member's: those of Kubernetes itself, but for ServiceAccounts, are everybody's or mightier than a member.
func (Issuer) Subject(member membership.Member) (rbacv1.Subject, error) {
	if member.Identity == nil {
		return rbacv1.Subject{}, fmt.Errorf("%w: set it on MemberCluster %s to whom its agent authenticates as", ErrMissing, member.Name)
	}
	subject, problem := normal(*member.Identity)
	if problem != "" {
		return rbacv1.Subject{}, fmt.Errorf("%w: %s %q of MemberCluster %s %s", ErrMissing, subject.Kind, subject.Name, member.Name, problem)
	}
	return subject, nil
}

// Issue returns an empty credential of type Identity, without an expiry: the hub does not know it.
func (i Issuer) Issue(_ context.Context, member membership.Member, request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	if request.Type != v1alpha1.CredentialIdentity {
		return v1alpha1.Credential{}, &membership.InvalidError{Field: "type", Problem: fmt.Sprintf(
			"is %q, and this issuer's is %q", request.Type, v1alpha1.CredentialIdentity)}
	}
	if _, err := i.Subject(member); err != nil {
		return v1alpha1.Credential{}, err
	}
	return v1alpha1.Credential{Type: v1alpha1.CredentialIdentity}, nil
}

// normal returns subject with all that follows from its kind, and what is wrong with it.
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
			return subject, "is a group of Kubernetes itself: name one that the agent alone is in"
		}
	default:
		return subject, "is of a kind that is none of User, Group and ServiceAccount"
	}
	subject.APIGroup, subject.Namespace = rbacv1.GroupName, ""
	return subject, ""
}

// Method is the agent's side: it has nothing to ask for but that its identity be bound.
type Method struct{}

var _ registration.Method = Method{}

// Type returns Identity.
func (Method) Type() v1alpha1.CredentialType { return v1alpha1.CredentialIdentity }

// Request returns a request without content; there is nothing to keep. A lifetime means nothing here.
func (Method) Request(*registration.ClaimKey, *int32) (v1alpha1.CredentialRequest, []byte, error) {
	return v1alpha1.CredentialRequest{Type: v1alpha1.CredentialIdentity}, nil, nil
}

// Open returns zero material: the agent goes on with the credential that it has.
func (Method) Open(_ *registration.ClaimKey, _ []byte, credential v1alpha1.Credential) (registration.Material, error) {
	if credential.Type != v1alpha1.CredentialIdentity {
		return registration.Material{}, fmt.Errorf("confirm the identity: the hub answered with a credential of type %q", credential.Type)
	}
	return registration.Material{}, nil
}
