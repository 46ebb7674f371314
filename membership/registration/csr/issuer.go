package csr

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// DefaultLifetime is the default lifetime of a certificate. An agent renews it before 80 % of the lifetime have
	// passed, so that a hub or a member may be unavailable for six days at any time.
	DefaultLifetime = 30 * 24 * time.Hour

	// The minimum of the API server.
	minLifetime = 10 * time.Minute
	// A working signer signs within a second.
	timeout = time.Minute
)

// ErrNoSigner means that no signer has signed an approved request.
var ErrNoSigner = errors.New("the hub has no signer for " + certificatesv1.KubeAPIServerClientSignerName +
	" (the CSR signing controller of kube-controller-manager): let agents join with the token method instead")

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kube-apiserver-client,verbs=approve

// Issuer issues certificates on the hub, signed by the hub's control plane. It may be used concurrently.
type Issuer struct {
	// Client creates, approves and deletes CertificateSigningRequests. Required.
	Client client.Client
	// Reader reads CertificateSigningRequests. Use a manager's API reader, so that they are not all cached. Unset: Client.
	Reader client.Reader
	// Lifetime of certificates unless an agent requests less; at least 10 minutes. The signer may grant less. Unset:
	// [DefaultLifetime].
	Lifetime time.Duration
	// UserPrefix is the prefix of the user names, followed by the fingerprint of the claim. The [Method] must have the
	// same prefix. It is for clients with their own keys that are not members, such as agents of add-ons. Unset: the
	// prefix of [User].
	UserPrefix string
	// Labels are added to each CertificateSigningRequest, besides membership.MemberLabel. Unset: none.
	Labels map[string]string
	// Clock measures how long the issuer waits for the signer, and the age of a certificate that was not delivered. It
	// must be correct to some minutes. Unset: the system clock.
	Clock clock.PassiveClock
}

var _ membership.Issuer = (*Issuer)(nil)

// Subject returns the user of the claim.
func (i *Issuer) Subject(member membership.Member) (rbacv1.Subject, error) {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: i.user(member.Claim)}, nil
}

// Issue performs one step towards the certificate: create, approve, read. The certificate is for the key that has
// signed the request, so the caller must have checked that the request belongs to the member's agent: see
// [registration.Verify] and [registration.VerifyRenewal].
//
// Each step continues from the object on the hub, whose name depends on the member and the request only. It returns
// [membership.ErrPending] while the signer works, [ErrNoSigner] after a minute without a signature, an
// [*membership.InvalidError] for an invalid request, and otherwise the reason why the signer or another approver
// refused. All errors except the InvalidError may be temporary: Issue may be called again after each.
func (i *Issuer) Issue(ctx context.Context, member membership.Member,
	request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	if request.Type != v1alpha1.CredentialCertificate {
		return v1alpha1.Credential{}, &membership.InvalidError{Field: "type", Problem: fmt.Sprintf(
			"is %q, and this issuer's is %q", request.Type, v1alpha1.CredentialCertificate)}
	}
	key, err := check(request.CertificateRequest, i.user(member.Claim))
	if err != nil {
		return v1alpha1.Credential{}, err
	}
	want := i.signingRequest(member, request)
	credential, err := i.issue(ctx, member, want, key)
	if err != nil && !errors.Is(err, membership.ErrPending) {
		err = fmt.Errorf("issue a certificate for member %s by CertificateSigningRequest %s: %w", member.Name, want.Name, err)
	}
	return credential, err
}

func (i *Issuer) issue(ctx context.Context, member membership.Member,
	want *certificatesv1.CertificateSigningRequest, key string) (v1alpha1.Credential, error) {
	pending := v1alpha1.Credential{}
	csr, err := i.file(ctx, want)
	if err != nil {
		return pending, err
	}
	approved, err := progress(csr)
	switch {
	case err != nil:
		return pending, err
	case approved == nil:
		return pending, i.approve(ctx, csr, member)
	case len(csr.Status.Certificate) == 0:
		if i.clock().Since(approved.LastUpdateTime.Time) >= timeout {
			return pending, ErrNoSigner
		}
		return pending, membership.ErrPending
	}
	certificate, err := checkCertificate(csr.Status.Certificate, key, i.user(member.Claim))
	if err != nil {
		return pending, err
	}
	if err := client.IgnoreNotFound(i.Client.Delete(ctx, csr, precondition.Unchanged(csr))); err != nil {
		return pending, fmt.Errorf("delete the CertificateSigningRequest: %w", err)
	}
	if issued := csr.CreationTimestamp.Time; i.clock().Since(issued) >= certificate.NotAfter.Sub(issued)/2 {
		// An issuer was interrupted before it could deliver the certificate. The agent would have to renew it immediately,
		// if the certificate were still valid.
		return pending, membership.ErrPending
	}
	return v1alpha1.Credential{
		Type:           v1alpha1.CredentialCertificate,
		Certificate:    csr.Status.Certificate,
		IssuedAt:       new(csr.CreationTimestamp),
		ExpirationTime: new(metav1.NewTime(certificate.NotAfter)),
	}, nil
}

// signingRequest returns the desired object. Its name contains the member, and a hash of the request and the member's
// UID, so that it never collides with another member of the same name or another request of the same member.
func (i *Issuer) signingRequest(member membership.Member,
	request v1alpha1.CredentialRequest) *certificatesv1.CertificateSigningRequest {
	seconds := int32(max(i.lifetime(), minLifetime) / time.Second)
	if asked := request.ExpirationSeconds; asked != nil {
		seconds = max(min(*asked, seconds), int32(minLifetime/time.Second))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", member.UID, seconds, request.CertificateRequest))
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "muster-" + member.Name + "-" + hex.EncodeToString(sum[:8]),
			Labels: i.labels(member),
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           request.CertificateRequest,
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: &seconds,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}

// file returns the request on the hub, and creates it if it does not exist.
func (i *Issuer) file(ctx context.Context,
	want *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	found := &certificatesv1.CertificateSigningRequest{}
	err := i.reader().Get(ctx, client.ObjectKeyFromObject(want), found)
	if apierrors.IsNotFound(err) {
		err = i.Client.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			return nil, membership.ErrPending
		}
		found = want
	}
	if err != nil {
		return nil, err
	}
	// Any user may create an object with this name: only a request that equals the checked one is approved.
	same := string(found.Spec.Request) == string(want.Spec.Request) && found.Spec.SignerName == want.Spec.SignerName &&
		slices.Equal(found.Spec.Usages, want.Spec.Usages) &&
		ptr.Equal(found.Spec.ExpirationSeconds, want.Spec.ExpirationSeconds)
	if !same {
		return nil, errors.New("another client created a different request with this name: check it and delete it")
	}
	return found, nil
}

// progress returns the approval if there is one, and an error if the request was denied or failed.
func progress(csr *certificatesv1.CertificateSigningRequest) (
	approved *certificatesv1.CertificateSigningRequestCondition, err error,
) {
	for n := range csr.Status.Conditions {
		condition := &csr.Status.Conditions[n]
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			err = errors.New("the request was denied by another approver")
		case certificatesv1.CertificateFailed:
			err = errors.New("the signer of the request failed")
		case certificatesv1.CertificateApproved:
			approved = condition
			continue
		default:
			continue
		}
		return nil, fmt.Errorf("%w (%s: %s): remove the cause and delete the object to try again", err, condition.Reason,
			condition.Message)
	}
	return approved, nil
}

// approve returns ErrPending when it succeeds, because the signer must act next.
func (i *Issuer) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	member membership.Member) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type:           certificatesv1.CertificateApproved,
		Status:         corev1.ConditionTrue,
		Reason:         "MemberAccepted",
		Message:        "muster checked this request of member " + member.Name,
		LastUpdateTime: metav1.NewTime(i.clock().Now()),
	})
	err := i.Client.SubResource("approval").Update(ctx, csr)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("approve the CertificateSigningRequest: %w", err)
	}
	return membership.ErrPending
}

// Clean deletes the requests of a member that were never completed. Call it for a member that has left. If the issuer
// has Labels, Clean deletes only requests with these labels.
func (i *Issuer) Clean(ctx context.Context, member membership.Member) error {
	var left certificatesv1.CertificateSigningRequestList
	if err := i.reader().List(ctx, &left, client.MatchingLabels(i.labels(member))); err != nil {
		return fmt.Errorf("list CertificateSigningRequests of member %s: %w", member.Name, err)
	}
	for n := range left.Items {
		if err := client.IgnoreNotFound(i.Client.Delete(ctx, &left.Items[n],
			precondition.Unchanged(&left.Items[n]))); err != nil {
			return fmt.Errorf("delete CertificateSigningRequest %s of member %s: %w", left.Items[n].Name, member.Name, err)
		}
	}
	return nil
}

func (i *Issuer) user(claim string) string { return cmp.Or(i.UserPrefix, userPrefix) + claim }

func (i *Issuer) labels(member membership.Member) map[string]string {
	labels := map[string]string{membership.MemberLabel: member.Name}
	maps.Copy(labels, i.Labels)
	return labels
}

func (i *Issuer) reader() client.Reader {
	if i.Reader != nil {
		return i.Reader
	}
	return i.Client
}

func (i *Issuer) lifetime() time.Duration {
	if i.Lifetime != 0 {
		return i.Lifetime
	}
	return DefaultLifetime
}

func (i *Issuer) clock() clock.PassiveClock {
	if i.Clock != nil {
		return i.Clock
	}
	return clock.RealClock{}
}
