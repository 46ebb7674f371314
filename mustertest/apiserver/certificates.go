package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// authority is the certificate authority of a server. It signs the server's certificate and client certificates.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte
	serving     tls.Certificate
}

const (
	backdate   = 5 * time.Minute
	century    = 100 * 365 * 24 * time.Hour
	clientLife = 365 * 24 * time.Hour
)

func newAuthority(host string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host + " CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(century),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	servingKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serving, err := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host, "kubernetes", "kubernetes.default.svc"},
		NotAfter: now.Add(century), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, servingKey.Public(), now)
	if err != nil {
		return nil, err
	}
	a.serving = tls.Certificate{Certificate: [][]byte{serving}, PrivateKey: servingKey}
	return a, nil
}

func (a *authority) issue(template *x509.Certificate, public any, now time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	if template.NotBefore.IsZero() {
		template.NotBefore = now.Add(-backdate)
	}
	return x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
}

func (a *authority) verifyClient(certificate *x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// clientCertificate returns a client certificate and a key for a user, both in PEM.
func (a *authority) clientCertificate(u user, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: u.Name, Organization: u.Groups}, NotAfter: now.Add(century),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, private.Public(), now)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

var clientUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
}

// signed returns a copy of an approved CertificateSigningRequest with a certificate or the condition Failed. It returns
// nil if the request is not approved, is already complete or is for another signer.
func (s *Server) signed(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	has := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == kind && c.Status == corev1.ConditionTrue
		})
	}
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || len(csr.Status.Certificate) > 0 ||
		!has(certificatesv1.CertificateApproved) || has(certificatesv1.CertificateDenied) ||
		has(certificatesv1.CertificateFailed) {
		return nil
	}
	csr = csr.DeepCopy()
	now := s.options.Clock.Now()
	certificate, err := s.sign509(csr, now)
	if err != nil {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure",
			Message: err.Error(), LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		})
		return csr
	}
	csr.Status.Certificate = certificate
	return csr
}

func (s *Server) sign509(csr *certificatesv1.CertificateSigningRequest, now time.Time) ([]byte, error) {
	request, err := kinds.ParseCSR(csr.Spec.Request)
	if err != nil {
		return nil, fmt.Errorf("unable to parse csr %q: %w", csr.Name, err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, err
	}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(clientUsages, usage) {
			return nil, fmt.Errorf("invalid usage for client certificate: %s", usage)
		}
	}
	if !slices.Contains(csr.Spec.Usages, certificatesv1.UsageClientAuth) {
		return nil, fmt.Errorf("usages did not contain %s", certificatesv1.UsageClientAuth)
	}
	life := clientLife
	if csr.Spec.ExpirationSeconds != nil {
		life = min(life, time.Duration(*csr.Spec.ExpirationSeconds)*time.Second)
	}
	usage := x509.KeyUsageDigitalSignature
	if slices.Contains(csr.Spec.Usages, certificatesv1.UsageKeyEncipherment) {
		usage |= x509.KeyUsageKeyEncipherment
	}
	der, err := s.authority.issue(&x509.Certificate{
		Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		EmailAddresses: request.EmailAddresses, URIs: request.URIs, NotAfter: now.Add(life), KeyUsage: usage,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, request.PublicKey, now)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
