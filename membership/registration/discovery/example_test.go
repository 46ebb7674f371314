package discovery_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/discovery"
)

// The bootstrap is stored like the Secret of a JoinToken: in the Secret that agents read by default.
func ExampleDiscover() {
	ctx := context.Background()
	bootstrap, err := discovery.Discover(ctx, discovery.Options{
		Server:       "https://hub.example.com:6443",
		Token:        "abc123.0123456789abcdef",
		CACertHashes: []string{"sha256:7dd8bb3a8f833146d63ba87cc5ce3f48a2cd14788398e6d51171d0e04087fe07"},
		Timeout:      10 * time.Second,
	})
	if errors.Is(err, discovery.ErrWrongPin) {
		fmt.Println("mistyped, or another server impersonates the hub")
	}
	if err != nil {
		return
	}
	joinYAML, err := bootstrap.Marshal()
	if err != nil {
		return
	}
	_ = corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret},
		Data:       map[string][]byte{registration.BootstrapKey: joinYAML},
	}
}

// A client that trusts no other server needs the hash of the hub's CA.
func ExampleDiscover_withoutPins() {
	_, err := discovery.Discover(context.Background(), discovery.Options{
		Server: "https://hub.example.com:6443", Token: "abc123.0123456789abcdef",
	})
	fmt.Println(errors.Is(err, discovery.ErrNoPins))
	// Output: true
}

func ExampleCACertHash() {
	fmt.Println(discovery.CACertHash(&x509.Certificate{RawSubjectPublicKeyInfo: []byte("a public key in DER")}))
	// Output: sha256:7dd8bb3a8f833146d63ba87cc5ce3f48a2cd14788398e6d51171d0e04087fe07
}
