package localplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certificates are valid from one day ago, so that tests may set a client's clock back. They expire long after the end
// of any plane.
const (
	certificateBackdate = 24 * time.Hour
	certificateLifetime = 10 * 365 * 24 * time.Hour
)

// A keyPair is a certificate and its private key, both as PEM.
type keyPair struct {
	cert, key []byte
}

// An authority signs the certificates of one plane. It is immutable, so it may sign concurrently.
type authority struct {
	keyPair
	parent *x509.Certificate
	signer *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	template := newTemplate(pkix.Name{CommonName: name})
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, template, signer, signer)
	if err != nil {
		return nil, fmt.Errorf("certificate of authority %s: %w", name, err)
	}
	block, _ := pem.Decode(pair.cert)
	parent, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate of authority %s: %w", name, err)
	}
	return &authority{keyPair: pair, parent: parent, signer: signer}, nil
}

// server signs a certificate for a server at the given host names and addresses.
func (a *authority) server(name string, hosts ...string) (keyPair, error) {
	template := newTemplate(pkix.Name{CommonName: name})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(template)
}

// client signs a client certificate. Kubernetes authenticates it as the user name with the given groups.
func (a *authority) client(name string, groups ...string) (keyPair, error) {
	template := newTemplate(pkix.Name{CommonName: name, Organization: groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	pair, err := sign(template, a.parent, key, a.signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair, nil
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	// With 159 bits, a serial number is positive and fits into the 20 bytes of RFC 5280.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 159))
	if err != nil {
		panic(err) // crypto/rand never fails since Go 1.24.
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             now.Add(-certificateBackdate),
		NotAfter:              now.Add(certificateLifetime),
		BasicConstraintsValid: true,
	}
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return keyPair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM}, nil
}

// newKey generates an ECDSA key. The generation of an RSA key would take longer than the start of etcd.
func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate an ECDSA key: %w", err)
	}
	return key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode an ECDSA key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func encodePublicKey(key *ecdsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode an ECDSA public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
