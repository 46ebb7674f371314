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

// clusterInfo is what a hub says of itself, to anybody. None of it is to be believed before verify.
type clusterInfo struct {
	kubeconfig string
	data       map[string]string
}

// parse reads a ConfigMap. Errors quote nothing of it: it may come from anybody.
func parse(body []byte) (*clusterInfo, error) {
	var object struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(body, &object); err != nil || object.Kind != "ConfigMap" {
		return nil, fmt.Errorf("%w: what answers is no Kubernetes API server", ErrNotAHub)
	}
	kubeconfig := object.Data[bootstrapapi.KubeConfigKey]
	if kubeconfig == "" {
		return nil, fmt.Errorf("%w: its cluster-info has no kubeconfig", ErrNotAHub)
	}
	return &clusterInfo{kubeconfig: kubeconfig, data: object.Data}, nil
}

// verify checks that the kubeconfig was signed by somebody who knows the token.
func (c *clusterInfo) verify(id, secret string) error {
	signature := c.data[bootstrapapi.JWSSignatureKeyPrefix+id]
	if signature == "" {
		return fmt.Errorf("%w: it has not signed with a token %q: ask for another, unless that one is a few seconds old", ErrUnknownToken, id)
	}
	if !jws.DetachedTokenIsValid(signature, c.kubeconfig, id, secret) {
		return fmt.Errorf("%w: its signature with token %q is wrong", ErrWrongSignature, id)
	}
	return nil
}

// certificates returns the hub's CA, one certificate at least.
func (c *clusterInfo) certificates() ([]*x509.Certificate, error) {
	cluster, err := clusterOf(c.kubeconfig)
	if err != nil {
		return nil, err
	}
	certificates, err := certutil.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, fmt.Errorf("%w: the kubeconfig in its cluster-info has no CA", ErrNotAHub)
	}
	return certificates, nil
}

// clusterOf returns the one cluster of a kubeconfig.
func clusterOf(kubeconfig string) (*clientcmdapi.Cluster, error) {
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil || len(config.Clusters) != 1 {
		return nil, fmt.Errorf("%w: the kubeconfig in its cluster-info is not one of one cluster", ErrNotAHub)
	}
	for _, cluster := range config.Clusters {
		if cluster != nil {
			return cluster, nil
		}
	}
	return nil, fmt.Errorf("%w: the kubeconfig in its cluster-info has no cluster", ErrNotAHub)
}
