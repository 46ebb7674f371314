package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// kubeConfigKey is the key of kubeconfigs in cluster-api.
const kubeConfigKey = "value"

// connectionSecret returns the name of a kubeconfig Secret in cluster-api.
func connectionSecret(member string) string { return member + "-kubeconfig" }

// Annotations of the Secret.
const (
	// clusterAnnotation is the ID of the cluster of the kubeconfig.
	clusterAnnotation = "membership.muster.dev/cluster-id"
	// endingAnnotation is set before the access of the kubeconfig is revoked, so that a later call can determine why it
	// is invalid.
	endingAnnotation = "membership.muster.dev/access-ending"
)

// isConnection reports whether a Secret was created by a Join of the member.
func isConnection(secret *corev1.Secret, member string) bool {
	return secret.Labels[membership.MemberLabel] == member
}

// connection returns the Secret that Join has created for a member; nil: there is none.
func connection(ctx context.Context, hub *cluster, namespace, member string) (*corev1.Secret, error) {
	secret, err := found(ctx, hub, client.ObjectKey{Namespace: namespace, Name: connectionSecret(member)},
		&corev1.Secret{})
	if err != nil || secret == nil || !isConnection(secret, member) {
		return nil, err
	}
	return secret, nil
}

// follow connects to a member with the kubeconfig of the hub. Call end when the connection is no longer needed.
func follow(secret *corev1.Secret) (member *cluster, end func(), err error) {
	way, err := kubeconfig.Parse(secret.Data, kubeConfigKey, kubeconfig.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("read Secret %s of the hub: %w", client.ObjectKeyFromObject(secret), err)
	}
	live, err := kubeconfig.NewLive(way)
	if err != nil {
		return nil, nil, err
	}
	config, _, err := live.Lend()
	if err == nil {
		member, err = connect(Member, config)
	}
	if err != nil {
		live.Close()
		return nil, nil, err
	}
	return member, live.Close, nil
}

// endpoint is the address at which the hub reaches a member.
type endpoint struct {
	server, serverName string
	ca                 []byte
	proxy              string
	proxyHeaders       map[string]string
}

// endpointOf completes the options with the values of a config.
func endpointOf(config *rest.Config, o JoinOptions) (endpoint, error) {
	e := endpoint{server: o.Server, ca: o.CA, proxy: o.ProxyURL, proxyHeaders: o.ProxyHeaders}
	if o.Server == "" {
		e.server, e.serverName = config.Host+strings.TrimSuffix(config.APIPath, "/"), config.ServerName
		if !strings.Contains(e.server, "://") {
			e.server = "https://" + e.server
		}
		if o.ProxyURL == "" {
			var err error
			if e.proxy, err = proxyOf(config, e.server); err != nil {
				return e, err
			}
		}
	}
	if len(o.CA) > 0 {
		return e, nil
	}
	if config.Insecure {
		return e, errors.New("the kubeconfig does not verify the server's certificate, and the hub does not send a " +
			"credential to a server that it cannot verify")
	}
	full := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(full); err != nil {
		return e, fmt.Errorf("read the certificate authority: %w", err)
	}
	e.ca = full.CAData
	return e, nil
}

// proxyOf returns the proxy of a config for a server. The environment of this process does not apply to the hub.
func proxyOf(config *rest.Config, server string) (string, error) {
	at, err := url.Parse(server)
	if err != nil || config.Proxy == nil {
		return "", nil //nolint:nilerr // the server's URL is checked by valid
	}
	proxy, err := config.Proxy(&http.Request{Method: http.MethodGet, URL: at, Host: at.Host, Header: http.Header{}})
	if err != nil {
		return "", errors.New("the Proxy function of the config failed") // the cause may contain a password
	}
	if proxy == nil {
		return "", nil
	}
	return proxy.String(), nil
}

// data returns the content of a Secret with the endpoint and a token, for the hub.
func (e endpoint) data(name, token string) (map[string][]byte, error) {
	whole, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: e.server, TLSServerName: e.serverName, CertificateAuthorityData: e.ca, ProxyURL: e.proxy,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, errors.New("write the kubeconfig of the member") // the cause may contain the token
	}
	data := map[string][]byte{kubeConfigKey: whole}
	if len(e.proxyHeaders) > 0 {
		if data[kubeconfig.ProxyHeadersKey], err = json.Marshal(e.proxyHeaders); err != nil {
			return nil, errors.New("write the headers for the member's proxy")
		}
	}
	return data, nil
}

// valid returns a [*membership.InvalidError] for a value that a hub rejects. The error names the option.
func (e endpoint) valid() error {
	data, err := e.data("member", "token")
	if err != nil {
		return err
	}
	_, err = kubeconfig.Parse(data, kubeConfigKey, kubeconfig.Options{})
	invalid, is := errors.AsType[*membership.InvalidError](err)
	if !is {
		return err
	}
	options := map[string]string{
		kubeConfigKey + ".cluster.server":                     "Server",
		kubeConfigKey + ".cluster.certificate-authority-data": "CA",
		kubeConfigKey + ".cluster.proxy-url":                  "ProxyURL",
		kubeconfig.ProxyHeadersKey:                            "ProxyHeaders",
	}
	return &membership.InvalidError{Field: cmp.Or(options[invalid.Field], invalid.Field), Problem: invalid.Problem}
}

// writeSecret stores the kubeconfig. The MemberCluster owns the Secret, unless [Unjoin] needs the Secret after the
// deletion of the MemberCluster.
func (j *join) writeSecret(ctx context.Context, token string) (changed bool, err error) {
	if err := j.progress.makeNamespace(ctx, j.hub, j.ConnectionNamespace); err != nil {
		return false, err
	}
	data, err := j.endpoint.data(j.Name, token)
	if err != nil {
		return false, err
	}
	key := client.ObjectKey{Namespace: j.ConnectionNamespace, Name: connectionSecret(j.Name)}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{membership.MemberLabel: j.Name},
			Annotations: map[string]string{clusterAnnotation: j.ClusterID},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCluster",
				Name: j.Name, UID: j.cluster.UID}},
		},
		Data: data,
	}
	secret, err := found(ctx, j.hub, key, &corev1.Secret{})
	if err != nil {
		return false, err
	}
	if secret == nil {
		return true, j.hub.explain("create Secret "+key.String(), j.hub.Create(ctx, wanted))
	}
	before := secret.DeepCopy()
	secret.Data, secret.OwnerReferences = wanted.Data, wanted.OwnerReferences
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[clusterAnnotation] = j.ClusterID
	delete(secret.Annotations, endingAnnotation)
	if equality.Semantic.DeepEqual(before, secret) {
		return false, nil
	}
	return true, j.hub.explain("write Secret "+key.String(), j.hub.Update(ctx, secret))
}
