package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Publication is what a hub says of itself to anybody, in the ConfigMap kube-public/cluster-info.
type Publication struct {
	// Server is the URL of its API server that it names, which its own network alone may reach.
	Server string
	// CA is the PEM-encoded bundle of its CA.
	CA []byte
	// CACertHashes are the pins of that.
	CACertHashes []string
	// SignedWith are the IDs of the bootstrap tokens that it is signed with, in their order: those by which [Discover] finds the hub. It is signed within
	// a second or two after a token was made, if the hub's bootstrap signer runs.
	SignedWith []string
}

// Signed reports whether it is signed with the token of that ID.
func (p *Publication) Signed(tokenID string) bool {
	return p != nil && slices.Contains(p.SignedWith, tokenID)
}

// Published returns what a hub has published, be it by [Publish] or by kubeadm; nil if there is nothing. What is there and cannot be discovered by is
// [ErrNotAHub]. It does not look whether anybody may read that, which Publish sees to when it is called with the same Server and CA.
//
// It needs get on configmaps in kube-public. The client's scheme must know core/v1.
func Published(ctx context.Context, c client.Reader) (*Publication, error) {
	var info corev1.ConfigMap
	key := client.ObjectKey{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}
	if err := c.Get(ctx, key, &info); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	cluster, err := clusterOf(info.Data[bootstrapapi.KubeConfigKey])
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	p := &Publication{Server: cluster.Server, CA: cluster.CertificateAuthorityData}
	if p.CACertHashes, err = CACertHashes(p.CA); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w: the kubeconfig in it has no CA", key, ErrNotAHub)
	}
	for name, signature := range info.Data {
		if id, is := strings.CutPrefix(name, bootstrapapi.JWSSignatureKeyPrefix); is && signature != "" {
			p.SignedWith = append(p.SignedWith, id)
		}
	}
	slices.Sort(p.SignedWith)
	return p, nil
}
