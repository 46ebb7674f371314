package admin

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/agent"
)

// agentSecrets are the Secrets of a pull agent on a member.
type agentSecrets struct {
	store, bootstrap string
}

// secretsFor returns the Secrets for a hub with a name, as in agent.HubOptions; empty: for the hub without a name.
func secretsFor(hub string) agentSecrets {
	if hub != "" {
		hub = "-" + hub
	}
	return agentSecrets{store: agent.DefaultStoreSecret + hub, bootstrap: agent.DefaultBootstrapSecret + hub}
}

func (a agentSecrets) names() []string { return []string{a.store, a.bootstrap} }

// isAgents reports whether a Secret belongs to an agent of any hub.
func isAgents(secret *corev1.Secret) bool {
	if secret.Type != corev1.SecretTypeOpaque {
		return false
	}
	return slices.ContainsFunc(secretsFor("").names(), func(name string) bool {
		return secret.Name == name || strings.HasPrefix(secret.Name, name+"-")
	})
}

// agentSecret returns the name of a Secret of another agent in the namespace; empty: none. Without permission to list
// Secrets only the Secret of a hub without a name can be found.
func agentSecret(ctx context.Context, member *cluster, namespace string, but agentSecrets) (string, error) {
	var secrets corev1.SecretList
	err := member.List(ctx, &secrets, client.InNamespace(namespace))
	if err == nil {
		for i := range secrets.Items {
			if secret := &secrets.Items[i]; isAgents(secret) && !slices.Contains(but.names(), secret.Name) {
				return secret.Name, nil
			}
		}
		return "", nil
	}
	if !apierrors.IsForbidden(err) {
		return "", member.explain("find the Secrets of agents in namespace "+namespace, err)
	}
	for _, name := range secretsFor("").names() {
		if slices.Contains(but.names(), name) {
			continue
		}
		secret, err := found(ctx, member, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
		if err != nil {
			return "", err
		}
		if secret != nil {
			return name, nil
		}
	}
	return "", nil
}
