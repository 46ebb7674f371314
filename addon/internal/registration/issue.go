package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
)

var errNoSigner = &problem{Problem: health.Problem{Reason: v1alpha1.ReasonRegistering, Retried: true,
	Message: "The hub has no signer " +
		"kubernetes.io/kube-apiserver-client (the CSR signing controller of kube-controller-manager): set the " +
		"credential of the registration to Token."}}

// issue issues a credential if one is due, and stores it.
func (r *Registrar) issue(ctx context.Context, w *wanted, o *observed) error {
	if w.credential == v1alpha1.RegistrationToken {
		if err := r.ensureAccount(ctx, w, o); err != nil {
			return err
		}
	}
	switch {
	case !w.due(o, r.clock.Now()):
		return nil
	case w.credential == v1alpha1.RegistrationToken:
		return r.issueToken(ctx, w, o)
	}
	return r.issueCertificate(ctx, w, o)
}

func (r *Registrar) issueToken(ctx context.Context, w *wanted, o *observed) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &w.seconds}}
	if err := r.client.SubResource("token").Create(ctx, o.account, request); err != nil {
		return fmt.Errorf("issue a token for %s: %w", w, err)
	}
	expires := request.Status.ExpirationTimestamp
	granted := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, w.seconds)) * time.Second
	return r.keep(ctx, w, o, record{
		For: w.holder, Credential: w.credential, Asked: w.seconds, Account: o.account.UID,
		Issued: metav1.NewTime(expires.Add(-granted)), Expires: expires,
	}, map[string][]byte{tokenKey: []byte(request.Status.Token)})
}

// issueCertificate performs one step of the issue of a certificate. The key is stored before it is used, and stays the
// same for one holder, so that all steps find the results of earlier ones.
func (r *Registrar) issueCertificate(ctx context.Context, w *wanted, o *observed) error {
	if o.record.For != w.holder || o.secret == nil || len(o.secret.Data[privateKey]) == 0 {
		if err := r.keepNewKey(ctx, w, o); err != nil {
			return err
		}
	}
	member, claim, err := w.claim(o)
	if err != nil {
		return err
	}
	method := csr.Method{UserPrefix: userPrefix(w.key), Key: claim}
	request, _, err := method.Request(claim, new(int32(w.seconds)))
	if err != nil {
		return fmt.Errorf("request a certificate for %s: %w", w, err)
	}
	credential, err := r.certificates(w).Issue(ctx, member, request)
	switch {
	case errors.Is(err, csr.ErrNoSigner):
		return errNoSigner
	case err != nil:
		return err
	}
	material, err := method.Open(claim, nil, credential)
	if err != nil {
		return fmt.Errorf("retrieve the certificate for %s: %w", w, err)
	}
	return r.keep(ctx, w, o, record{
		For: w.holder, Credential: w.credential, Asked: w.seconds, Issued: *credential.IssuedAt,
		Expires: *credential.ExpirationTime,
	}, map[string][]byte{certificateKey: material.Certificate, privateKey: o.secret.Data[privateKey]})
}

// certificates returns an issuer that issues certificates for an add-on's agent as for a member, with separate names.
func (r *Registrar) certificates(w *wanted) *csr.Issuer {
	return &csr.Issuer{
		Client: r.client, Reader: r.live, Clock: r.clock, Lifetime: time.Duration(w.seconds) * time.Second,
		UserPrefix: userPrefix(w.key), Labels: map[string]string{v1alpha1.AddonLabel: w.key.Name},
	}
}

// claim returns the stored key and a member with its claim.
func (w *wanted) claim(o *observed) (membership.Member, *registration.ClaimKey, error) {
	claim, err := registration.ParseClaimKey(o.secret.Data[privateKey])
	if err != nil {
		return membership.Member{}, nil,
			fmt.Errorf("read Secret %s/%s (delete it to create a new one): %w", o.secret.Namespace, o.secret.Name, err)
	}
	return membership.Member{Name: w.Member.Name, UID: w.Member.UID, Namespace: w.key.Namespace,
		Claim: claim.Fingerprint()}, claim, nil
}

// keepNewKey stores a new key, in addition to a token that the same holder may have.
func (r *Registrar) keepNewKey(ctx context.Context, w *wanted, o *observed) error {
	claim, err := registration.NewClaimKey()
	if err != nil {
		return err
	}
	key, err := claim.Marshal()
	if err != nil {
		return err
	}
	next, data := record{For: w.holder}, map[string][]byte{privateKey: key}
	if o.record.For == w.holder && o.record.Credential == v1alpha1.RegistrationToken {
		next, data[tokenKey] = o.record, o.secret.Data[tokenKey]
	}
	return r.keep(ctx, w, o, next, data)
}

// keep stores the current credential.
func (r *Registrar) keep(ctx context.Context, w *wanted, o *observed, next record, data map[string][]byte) error {
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("store the credential of %s: %w", w, err)
	}
	key := r.secretKey(w.key)
	secret, write := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, r.create
	if o.secret != nil {
		secret, write = o.secret.DeepCopy(), r.update
	}
	// The Secret is in no member's namespace, so its labels name the owner.
	secret.Labels = map[string]string{v1alpha1.AddonLabel: w.key.Name, membership.MemberLabel: w.Member.Name}
	secret.Annotations = map[string]string{recordAnnotation: string(text)}
	secret.Data = data
	if err := write(ctx, secret); err != nil {
		return err
	}
	o.secret, o.record = secret, next
	return nil
}
