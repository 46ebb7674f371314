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

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// DefaultLifetime is that of a certificate unless an [Issuer] says otherwise. An agent renews before 80 %
	// of it are over, so that a hub or a member may be away for six days at any time.
	DefaultLifetime = 30 * 24 * time.Hour

	// The API server takes no less.
	minLifetime = 10 * time.Minute
	// A signer that is there signs within a second.
	patience = time.Minute
)

// ErrNoSigner says that nobody signs what was approved.
var ErrNoSigner = errors.New("this hub has no signer for " + certificatesv1.KubeAPIServerClientSignerName +
	" (the CSR signing controller of kube-controller-manager): let agents join with the token method instead")

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kube-apiserver-client,verbs=approve

// Issuer is the hub's side: it has the hub's control plane sign certificates. It may be used concurrently.
type Issuer struct {
	// Client makes, approves and deletes CertificateSigningRequests. Required.
	Client client.Client
	// Reader reads them: a manager's API reader, so that they are not all cached for the sake of a few. Unset:
	// Client.
	Reader client.Reader
	// Lifetime that certificates have unless an agent asks for less; at least 10 minutes. The signer may
	// grant less. Unset: [DefaultLifetime].
	Lifetime time.Duration
	// UserPrefix begins the names of the users, whose end is the fingerprint of the claim; that of the [Method] is the same. It is for
	// those who are not members but have keys of their own, as agents of add-ons do. Unset: as [User] has it.
	UserPrefix string
	// Labels are on each CertificateSigningRequest beside membership.MemberLabel. Unset: none.
	Labels map[string]string
	// Clock tells how long the signer has been waited for, and how old a certificate is that was left. It must be
	// right to some minutes. Unset: the system's.
	Clock clock.PassiveClock
}

var _ membership.Issuer = (*Issuer)(nil)

// Subject returns the claim's user.
func (i *Issuer) Subject(member membership.Member) (rbacv1.Subject, error) {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: i.user(member.Claim)}, nil
}

// Issue takes one step on the way to the certificate: file, approve, collect. Each finds what the one before left
// on the hub, under a name that depends on nothing but member and request. It returns [membership.ErrPending]
// while the signer is at work, [ErrNoSigner] when that has taken a minute, an [*membership.InvalidError] for a
// request that is not as it must be, and what the signer or another approver said when they refused. All but
// the InvalidError may pass: it may be called again after each.
func (i *Issuer) Issue(ctx context.Context, member membership.Member, request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	if request.Type != v1alpha1.CredentialCertificate {
		return v1alpha1.Credential{}, &membership.InvalidError{Field: "type", Problem: fmt.Sprintf(
			"is %q, and this issuer's is %q", request.Type, v1alpha1.CredentialCertificate)}
	}
	if err := check(request.CertificateRequest, member.Claim, i.user(member.Claim)); err != nil {
		return v1alpha1.Credential{}, err
	}
	want := i.signingRequest(member, request)
	credential, err := i.issue(ctx, member, want)
	if err != nil && !errors.Is(err, membership.ErrPending) {
		err = fmt.Errorf("issue a certificate for member %s by CertificateSigningRequest %s: %w", member.Name, want.Name, err)
	}
	return credential, err
}

func (i *Issuer) issue(ctx context.Context, member membership.Member, want *certificatesv1.CertificateSigningRequest) (v1alpha1.Credential, error) {
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
		if i.clock().Since(approved.LastUpdateTime.Time) >= patience {
			return pending, ErrNoSigner
		}
		return pending, membership.ErrPending
	}
	certificate, err := checkCertificate(csr.Status.Certificate, member.Claim, i.user(member.Claim))
	if err != nil {
		return pending, err
	}
	if err := client.IgnoreNotFound(i.Client.Delete(ctx, csr, client.Preconditions{UID: &csr.UID})); err != nil {
		return pending, fmt.Errorf("delete it: %w", err)
	}
	if issued := csr.CreationTimestamp.Time; i.clock().Since(issued) >= certificate.NotAfter.Sub(issued)/2 {
		// It was left by an issuer that was interrupted some time ago. The agent would have to renew it at once, if
		// it still could.
		return pending, membership.ErrPending
	}
	return v1alpha1.Credential{
		Type:           v1alpha1.CredentialCertificate,
		Certificate:    csr.Status.Certificate,
		IssuedAt:       new(csr.CreationTimestamp),
		ExpirationTime: new(metav1.NewTime(certificate.NotAfter)),
	}, nil
}

// signingRequest returns what is filed. Its name tells the member, what was asked for and the member's UID, so that neither
// another member of the same name nor another request of the same member meets it.
func (i *Issuer) signingRequest(member membership.Member, request v1alpha1.CredentialRequest) *certificatesv1.CertificateSigningRequest {
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

// file returns the request as it is on the hub, which it creates if need be.
func (i *Issuer) file(ctx context.Context, want *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
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
	// Names are there for everybody to take: what is not word for word what was checked is not approved.
	same := string(found.Spec.Request) == string(want.Spec.Request) && found.Spec.SignerName == want.Spec.SignerName &&
		slices.Equal(found.Spec.Usages, want.Spec.Usages) &&
		ptr.Equal(found.Spec.ExpirationSeconds, want.Spec.ExpirationSeconds)
	if !same {
		return nil, errors.New("somebody else filed another request by this name: find out who, and delete it")
	}
	return found, nil
}

// progress returns the approval if there is one, and an error if the request was denied or has failed.
func progress(csr *certificatesv1.CertificateSigningRequest) (approved *certificatesv1.CertificateSigningRequestCondition, err error) {
	for n := range csr.Status.Conditions {
		condition := &csr.Status.Conditions[n]
		switch condition.Type {
		case certificatesv1.CertificateDenied:
			err = errors.New("it was denied by another approver")
		case certificatesv1.CertificateFailed:
			err = errors.New("its signer has failed")
		case certificatesv1.CertificateApproved:
			approved = condition
			continue
		default:
			continue
		}
		return nil, fmt.Errorf("%w (%s: %s): remove the cause and delete it to try again", err, condition.Reason, condition.Message)
	}
	return approved, nil
}

// approve returns ErrPending when it succeeds: the next thing to happen is up to the signer.
func (i *Issuer) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, member membership.Member) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type:           certificatesv1.CertificateApproved,
		Status:         corev1.ConditionTrue,
		Reason:         "MemberAccepted",
		Message:        "muster checked this request of member " + member.Name,
		LastUpdateTime: metav1.NewTime(i.clock().Now()),
	})
	err := i.Client.SubResource("approval").Update(ctx, csr)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("approve it: %w", err)
	}
	return membership.ErrPending
}

// Clean deletes what is left on the hub of requests of a member that were never answered. It is for a member
// that has left. Where the issuer has Labels only those count that have them, too.
func (i *Issuer) Clean(ctx context.Context, member membership.Member) error {
	var left certificatesv1.CertificateSigningRequestList
	if err := i.reader().List(ctx, &left, client.MatchingLabels(i.labels(member))); err != nil {
		return fmt.Errorf("list CertificateSigningRequests of member %s: %w", member.Name, err)
	}
	for n := range left.Items {
		if err := client.IgnoreNotFound(i.Client.Delete(ctx, &left.Items[n], client.Preconditions{UID: &left.Items[n].UID})); err != nil {
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
