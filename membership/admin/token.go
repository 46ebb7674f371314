package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TokenOptions are the options of [CreateToken]. The zero value permits requests without acceptance, without an
// expiration.
type TokenOptions struct {
	// Name of the JoinToken: a DNS label of at most 52 characters; for type BootstrapToken, bootstrap-token-<id>. Default:
	// a new name with the prefix "join-" or a new ID, so that each call creates another token.
	Name string
	// Spec of the JoinToken.
	Spec v1alpha1.JoinTokenSpec
	// Namespace of the JoinToken. CreateToken creates it. Default: muster-registration.
	Namespace string

	// Timeout for the hub to write a credential to the token's Secret. Default: one minute.
	Timeout time.Duration
	// Progress is called with each step.
	Progress func(Step)
}

// CreateToken creates a JoinToken, waits until the hub has created a credential for it, and returns both. The
// [registration.Bootstrap] is secret and hides its contents when printed. Its Marshal method returns the join.yaml that
// [Register], or an agent, reads. The status of the JoinToken contains its expiration time.
//
// An existing token of that name is returned if its spec is the same; otherwise the error is [ErrNameTaken]. The error
// is [ErrExpired] if the token has expired or is used up. CreateToken requires a running hub.
//
// CreateToken requires create and get on jointokens, get on secrets, and get and create on namespaces.
func CreateToken(ctx context.Context, config *rest.Config, o TokenOptions) (*v1alpha1.JoinToken,
	*registration.Bootstrap, error) {
	if o.Name != "" {
		if err := checkName("Name", o.Name); err != nil {
			return nil, nil, err
		}
	}
	if err := registration.CheckLabels("Spec.labels", o.Spec.Labels); err != nil {
		return nil, nil, err
	}
	o.Namespace = orDefault(o.Namespace, membership.RegistrationNamespace)
	o.Timeout = orDefault(o.Timeout, time.Minute)
	o.Spec.Type = orDefault(o.Spec.Type, v1alpha1.JoinTokenServiceAccount)
	if o.Name == "" && o.Spec.Type == v1alpha1.JoinTokenBootstrapToken {
		id, err := newTokenID()
		if err != nil {
			return nil, nil, err
		}
		o.Name = bootstrapapi.BootstrapTokenSecretPrefix + id
	}
	hub, err := connect(Hub, config)
	if err != nil {
		return nil, nil, err
	}
	progress := reporter(o.Progress)
	var token *v1alpha1.JoinToken
	var made bool
	err = progress.do("create the token", func() (detail string, err error) {
		token, made, err = makeToken(ctx, hub, o)
		switch {
		case err != nil:
			return "", err
		case made:
			return token.Name, nil
		default:
			return token.Name + " was there already", nil
		}
	})
	if err != nil {
		return nil, nil, err
	}
	var bootstrap *registration.Bootstrap
	err = progress.await(ctx, "wait for the hub to make a credential", o.Timeout, func(ctx context.Context) (seen, error) {
		now, err := found(ctx, hub, client.ObjectKeyFromObject(token), &v1alpha1.JoinToken{})
		if err != nil {
			return seen{}, err
		}
		if now == nil || now.UID != token.UID {
			return seen{}, fmt.Errorf("JoinToken %s was deleted concurrently: %w", token.Name, ErrNotFound)
		}
		token = now
		var result seen
		bootstrap, result, err = credentialOf(ctx, hub, token)
		return result, err
	})
	if _, never := errors.AsType[*membership.InvalidError](err); never && made {
		err = errors.Join(err, hub.removeRequested(ctx, token)) // otherwise each attempt would leave a token
	}
	return token, bootstrap, err
}

// makeToken creates a token, or returns the existing one with the same spec.
func makeToken(ctx context.Context, hub *cluster, o TokenOptions) (token *v1alpha1.JoinToken, made bool, err error) {
	if err := reporter(o.Progress).makeNamespace(ctx, hub, o.Namespace); err != nil {
		return nil, false, err
	}
	token = &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Spec: o.Spec}
	if o.Name == "" {
		token.GenerateName = "join-"
	}
	err = hub.Create(ctx, token)
	if err == nil {
		return token, true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, hub.explain("create the JoinToken", err)
	}
	there, err := found(ctx, hub, client.ObjectKeyFromObject(token), &v1alpha1.JoinToken{})
	switch wanted := o.Spec; {
	case err != nil:
		return nil, false, err
	case there == nil || there.DeletionTimestamp != nil:
		return nil, false, fmt.Errorf("JoinToken %s is being deleted: retry after its deletion: %w", o.Name, ErrNameTaken)
	default:
		if wanted.CredentialTTLSeconds == 0 {
			wanted.CredentialTTLSeconds = defaultCredentialTTL
		}
		if !equality.Semantic.DeepEqual(there.Spec, wanted) {
			return nil, false,
				fmt.Errorf("JoinToken %s exists with another spec: delete it, or choose another name: %w", o.Name, ErrNameTaken)
		}
		return there, false, nil
	}
}

// newTokenID returns a new ID of a bootstrap token. The ID must be unique, and is not secret.
func newTokenID() (string, error) {
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return "", fmt.Errorf("generate the ID of a bootstrap token: %w", err)
	}
	return token[:bootstrapapi.BootstrapTokenIDBytes], nil
}

// defaultCredentialTTL is the default of the API.
const defaultCredentialTTL = 86400

// credentialOf returns the contents of the Secret of a token that is ready.
func credentialOf(ctx context.Context, hub *cluster, token *v1alpha1.JoinToken) (*registration.Bootstrap, seen, error) {
	bootstrap, err := jointoken.Read(ctx, hub, token)
	switch {
	case errors.Is(err, membership.ErrPending):
		return nil, seen{detail: err.Error()}, nil
	case errors.Is(err, jointoken.ErrEnded):
		return nil, seen{}, fmt.Errorf("%w: %w", ErrExpired, err)
	case err != nil:
		return nil, seen{}, hub.explain("read the credential", err)
	}
	return bootstrap, seen{done: true, detail: "Secret " + token.Namespace + "/" + token.Status.SecretName}, nil
}
