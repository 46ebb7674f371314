package registration

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// KubeconfigKey is the key of the kubeconfig in the Secret on the member.
const KubeconfigKey = "kubeconfig"

// manifest returns the Secret for the member. The kubeconfig refers to files in the same directory, which client-go
// reloads.
func (r *Registrar) manifest(request *Request, o *observed) (*corev1.Secret, error) {
	user, data := &clientcmdapi.AuthInfo{}, map[string][]byte{}
	keep := func(key string) string {
		data[key] = o.secret.Data[key]
		return key
	}
	if o.record.Credential == v1alpha1.RegistrationToken {
		user.TokenFile = keep(tokenKey)
	} else {
		user.ClientCertificate, user.ClientKey = keep(certificateKey), keep(privateKey)
	}
	const hub = "hub"
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{hub: {Server: r.server, CertificateAuthorityData: r.ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{request.MemberAddon.Name: user},
		Contexts: map[string]*clientcmdapi.Context{hub: {
			Cluster: hub, AuthInfo: request.MemberAddon.Name, Namespace: request.Member.Namespace,
		}},
		CurrentContext: hub,
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", request, err)
	}
	data[KubeconfigKey] = kubeconfig
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: request.InstallNamespace,
			Name:      cmp.Or(request.Want.SecretName, request.MemberAddon.Name+"-hub-kubeconfig"),
			Labels:    map[string]string{v1alpha1.AddonLabel: request.MemberAddon.Name},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}, nil
}
