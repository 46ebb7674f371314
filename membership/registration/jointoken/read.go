package jointoken

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ErrEnded means that a token has expired, or is used up.
var ErrEnded = errors.New("the join token is no longer valid")

// Read returns the bootstrap in the Secret of a JoinToken, for programs that pass it to an agent. The JoinToken must
// have been read a moment ago.
//
// While there is no valid credential, the error is a [membership.ErrPending] with the reason. It is [ErrEnded] if the
// token has ended, and a [*membership.InvalidError] if the JoinToken or the hub must be changed first. Reader needs
// get on secrets in the token's namespace, and must not be a cache.
func Read(ctx context.Context, reader client.Reader, token *v1alpha1.JoinToken) (*registration.Bootstrap, error) {
	_, bootstrap, err := readSecret(ctx, reader, token)
	return bootstrap, err
}

// ReadValues returns the values of the Helm chart muster-agent with which a cluster registers with a JoinToken. The
// values are a secret. ReadValues requires the same permission as [Read] and returns the same errors. The error is also
// a [membership.ErrPending] if the hub has not written the values, because it runs an earlier version.
func ReadValues(ctx context.Context, reader client.Reader, token *v1alpha1.JoinToken) ([]byte, error) {
	secret, _, err := readSecret(ctx, reader, token)
	if err != nil {
		return nil, err
	}
	values := secret.Data[registration.ValuesKey]
	if len(values) == 0 {
		return nil, fmt.Errorf("JoinToken %s: Secret %s has no key %s: upgrade the hub: %w",
			token.Name, client.ObjectKeyFromObject(secret), registration.ValuesKey, membership.ErrPending)
	}
	return values, nil
}

// readSecret returns the Secret of a JoinToken and the credential in the Secret.
func readSecret(ctx context.Context, reader client.Reader, token *v1alpha1.JoinToken) (
	*corev1.Secret, *registration.Bootstrap, error,
) {
	pending := func(why string) error {
		return fmt.Errorf("JoinToken %s: %s: %w", token.Name, why, membership.ErrPending)
	}
	ready, message := meta.FindStatusCondition(token.Status.Conditions, v1alpha1.ConditionReady), ""
	if ready != nil {
		message = strings.TrimSuffix(ready.Message, ".") // part of an error
	}
	switch {
	case token.DeletionTimestamp != nil:
		return nil, nil, pending("the JoinToken is being deleted")
	case ready == nil:
		return nil, nil, pending("the hub has not processed the JoinToken yet: check that the controller of the hub is " +
			"running")
	case ready.Reason == v1alpha1.ReasonExpired || ready.Reason == v1alpha1.ReasonUsedUp:
		return nil, nil, fmt.Errorf("JoinToken %s: %s: %w", token.Name, message, ErrEnded)
	case ready.Reason == v1alpha1.ReasonInvalidLabel:
		return nil, nil, &membership.InvalidError{Field: "spec.labels", Problem: message}
	case ready.Reason == v1alpha1.ReasonNotEnabled || ready.Reason == v1alpha1.ReasonBootstrapTokenUnusable:
		return nil, nil, &membership.InvalidError{Field: "spec.type", Problem: message}
	case ready.Status != metav1.ConditionTrue || token.Status.SecretName == "":
		return nil, nil, pending(message)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: token.Namespace, Name: token.Status.SecretName}
	if err := reader.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil, pending(fmt.Sprintf("Secret %s was deleted and will be created again", key))
	} else if err != nil {
		return nil, nil, fmt.Errorf("read the Secret of JoinToken %s: %w", token.Name, err)
	}
	if !metav1.IsControlledBy(secret, token) {
		return nil, nil, pending(fmt.Sprintf("Secret %s belongs to an earlier JoinToken with this name", key))
	}
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	if err != nil {
		return nil, nil, pending(fmt.Sprintf("Secret %s cannot be used yet: %v", key, err))
	}
	return secret, bootstrap, nil
}
