package apiserver

import (
	"crypto/subtle"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokens "k8s.io/cluster-bootstrap/token/util"
	bootstrapsecrets "k8s.io/cluster-bootstrap/util/secrets"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// bootstrapUser returns the user of a bootstrap token, whose Secret is in kube-system, as kube-apiserver does with
// --enable-bootstrap-token-auth.
func (s *Server) bootstrapUser(token string) (user, bool) {
	if !bootstraptokens.IsValidBootstrapToken(token) {
		return user{}, false
	}
	id, text, _ := strings.Cut(token, ".")
	item := s.store.Get(store.Key{Resource: coreResource("secrets"), Namespace: metav1.NamespaceSystem,
		Name: bootstraptokens.BootstrapTokenSecretName(id)})
	if item == nil || deleted(item) {
		return user{}, false
	}
	var secret corev1.Secret
	if kinds.FromObject(item.Object, &secret) != nil || secret.Type != bootstrapapi.SecretTypeBootstrapToken ||
		bootstrapsecrets.GetData(&secret, bootstrapapi.BootstrapTokenIDKey) != id ||
		subtle.ConstantTimeCompare(secret.Data[bootstrapapi.BootstrapTokenSecretKey], []byte(text)) != 1 ||
		bootstrapsecrets.HasExpired(&secret, s.options.Clock.Now()) ||
		bootstrapsecrets.GetData(&secret, bootstrapapi.BootstrapTokenUsageAuthentication) != "true" {
		return user{}, false
	}
	groups, err := bootstrapsecrets.GetGroups(&secret)
	if err != nil {
		return user{}, false
	}
	return user{Name: bootstrapapi.BootstrapUserPrefix + id, Groups: groups}, true
}
