package localplane

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed kwok.yaml
var kwokConfig []byte

func (p *Plane) path(name string) string { return filepath.Join(p.files.folder, name) }

// prepare creates the credentials of the plane and writes the files that its components read.
func (p *Plane) prepare() error {
	ca, err := newAuthority(p.opts.Name)
	if err != nil {
		return err
	}
	p.ca = ca
	if p.admin, err = p.user("admin", "system:masters"); err != nil {
		return err
	}
	// etcd has a separate certificate authority. Otherwise etcd would accept the certificate of any user of the API
	// server. No API server can write to the etcd of another plane.
	etcdCA, err := newAuthority(p.opts.Name + "-etcd")
	if err != nil {
		return err
	}
	tokens, err := newKey()
	if err != nil {
		return err
	}

	// 10.0.0.1 is the first address of the service network, which is that of the Service kubernetes.
	serving, servingErr := ca.server(apiServerName, "127.0.0.1", "localhost", "10.0.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	etcdServing, etcdServingErr := etcdCA.server(etcdName, "127.0.0.1")
	etcdClient, etcdClientErr := etcdCA.client(apiServerName)
	tokensKey, tokensKeyErr := encodeKey(tokens)
	tokensPublic, tokensPublicErr := encodePublicKey(&tokens.PublicKey)
	kubeconfig, kubeconfigErr := Kubeconfig(p.admin)
	if err := errors.Join(servingErr, etcdServingErr, etcdClientErr, tokensKeyErr, tokensPublicErr,
		kubeconfigErr); err != nil {
		return err
	}

	for path, data := range map[string][]byte{
		p.Kubeconfig():            kubeconfig,
		p.path("ca.crt"):          ca.cert,
		p.path("ca.key"):          ca.key,
		p.path("serving.crt"):     serving.cert,
		p.path("serving.key"):     serving.key,
		p.path("etcd-ca.crt"):     etcdCA.cert,
		p.path("etcd.crt"):        etcdServing.cert,
		p.path("etcd.key"):        etcdServing.key,
		p.path("etcd-client.crt"): etcdClient.cert,
		p.path("etcd-client.key"): etcdClient.key,
		p.path("tokens.key"):      tokensKey,
		p.path("tokens.pub"):      tokensPublic,
		p.path("kwok.yaml"):       kwokConfig,
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("fill its folder: %w", err)
		}
	}
	return nil
}
