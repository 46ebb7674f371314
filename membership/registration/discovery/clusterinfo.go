package discovery

import (
	"crypto/x509"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

// clusterInfo is the public information about a hub. It must not be trusted before verify has succeeded.
type clusterInfo struct {
	kubeconfig string
	data       map[string]string
}

// parse reads a ConfigMap. Errors do not quote it, because its source is not verified.
func parse(body []byte) (*clusterInfo, error) {
	var object struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(body, &object); err != nil || object.Kind != "ConfigMap" {
		return nil, fmt.Errorf("%w: the server at this address is no Kubernetes API server", ErrNotAHub)
	}
	kubeconfig := object.Data[bootstrapapi.KubeConfigKey]
	if kubeconfig == "" {
		return nil, fmt.Errorf("%w: the hub's cluster-info has no kubeconfig", ErrNotAHub)
	}
	return &clusterInfo{kubeconfig: kubeconfig, data: object.Data}, nil
}

// verify checks that the kubeconfig was signed with the token.
func (c *clusterInfo) verify(id, secret string) error {
	signature := c.data[bootstrapapi.JWSSignatureKeyPrefix+id]
	if signature == "" {
		return fmt.Errorf("%w: the hub has not signed with a token %q: request another one, unless that one is a few "+
			"seconds old", ErrUnknownToken, id)
	}
	if !jws.DetachedTokenIsValid(signature, c.kubeconfig, id, secret) {
		return fmt.Errorf("%w: the hub's signature with token %q is wrong", ErrWrongSignature, id)
	}
	return nil
}

// certificates returns the certificates of the hub's CA, at least one.
func (c *clusterInfo) certificates() ([]*x509.Certificate, error) {
	cluster, err := clusterOf(c.kubeconfig)
	if err != nil {
		return nil, err
	}
	certificates, err := certutil.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, fmt.Errorf("%w: the kubeconfig in the hub's cluster-info has no CA", ErrNotAHub)
	}
	return certificates, nil
}

// clusterOf returns the only cluster of a kubeconfig.
func clusterOf(kubeconfig string) (*clientcmdapi.Cluster, error) {
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil || len(config.Clusters) != 1 {
		return nil, fmt.Errorf("%w: the kubeconfig in the hub's cluster-info does not contain exactly one cluster",
			ErrNotAHub)
	}
	for _, cluster := range config.Clusters {
		if cluster != nil {
			return cluster, nil
		}
	}
	return nil, fmt.Errorf("%w: the kubeconfig in the hub's cluster-info has no cluster", ErrNotAHub)
}
