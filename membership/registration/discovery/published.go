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

// A Publication is the public information about a hub, from the ConfigMap kube-public/cluster-info.
type Publication struct {
	// Server is the URL of the hub's API server in cluster-info, which may be reachable in the hub's own network only.
	Server string
	// CA is the PEM-encoded bundle of the hub's CA.
	CA []byte
	// CACertHashes are the pins of CA.
	CACertHashes []string
	// SignedWith are the sorted IDs of the bootstrap tokens that cluster-info is signed with. [Discover] finds the hub
	// with these tokens. The hub's bootstrap signer, if it runs, signs within a second or two after a token was created.
	SignedWith []string
}

// Signed reports whether cluster-info is signed with the token of that ID.
func (p *Publication) Signed(tokenID string) bool {
	return p != nil && slices.Contains(p.SignedWith, tokenID)
}

// Published returns the information that a hub has published with [Publish] or with kubeadm; nil if there is none. If
// the ConfigMap cannot be used for discovery, the error is [ErrNotAHub]. Published does not check whether every client
// may read the ConfigMap; call Publish with the same Server and CA to ensure that.
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
