package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// tokenTimeout is the timeout for the controller of JoinTokens.
	tokenTimeout  = 30 * time.Second
	tokenInterval = 200 * time.Millisecond
)

// tokenOf returns the JoinToken of a member's agent: for one use, by this cluster, and without automatic acceptance.
// The MemberCluster owns it.
func (r *Runner) tokenOf(cluster *v1alpha1.MemberCluster) *v1alpha1.JoinToken {
	return &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.RegistrationNamespace,
			Name:      Name + "-" + string(cluster.UID), // unique, even for members of the same name
			Labels:    map[string]string{membership.MemberLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCluster", Name: cluster.Name, UID: cluster.UID,
			}},
		},
		Spec: v1alpha1.JoinTokenSpec{
			TTLSeconds: new(int64(r.TokenTTL / time.Second)),
			MaxUses:    new(int32(1)),
			ClusterID:  cluster.Spec.ClusterID,
		},
	}
}

// observeToken observes the JoinToken of a member; nil: there is none.
func (r *Runner) observeToken(ctx context.Context, cluster *v1alpha1.MemberCluster) (*tokenSeen, error) {
	token := r.tokenOf(cluster)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(token), token)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get JoinToken %s: %w", token.Name, err)
	}
	return tokenState(token), nil
}

func tokenState(token *v1alpha1.JoinToken) *tokenSeen {
	s := &tokenSeen{Used: token.Status.Uses > 0}
	if ttl := token.Spec.TTLSeconds; ttl != nil {
		s.Ends = token.CreationTimestamp.Add(time.Duration(*ttl) * time.Second)
	}
	return s
}

// bootstrap returns the credential of the member's JoinToken, and creates a JoinToken if none exists that the agent
// could still use.
func (r *Runner) bootstrap(ctx context.Context, cluster *v1alpha1.MemberCluster) (*registration.Bootstrap, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	var found *registration.Bootstrap
	var waiting string
	err := wait.PollUntilContextCancel(ctx, tokenInterval, true, func(ctx context.Context) (done bool, err error) {
		found, waiting, err = r.provide(ctx, cluster)
		return found != nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) && waiting != "" {
		return nil, fmt.Errorf("wait for a credential for the agent: %s", waiting)
	}
	if err != nil {
		return nil, fmt.Errorf("get a credential for the agent: %w", err)
	}
	return found, nil
}

// provide performs the next step towards a credential. While there is none, it returns the reason.
func (r *Runner) provide(ctx context.Context, cluster *v1alpha1.MemberCluster) (found *registration.Bootstrap,
	waiting string, err error) {
	token := r.tokenOf(cluster)
	key := client.ObjectKeyFromObject(token)
	err = r.live.Get(ctx, key, token)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("JoinToken %s has just been created", key),
			client.IgnoreAlreadyExists(r.client.Create(ctx, r.tokenOf(cluster)))
	case err != nil:
		return nil, "", err
	case token.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("JoinToken %s is still being deleted", key), nil
	}
	s := tokenState(token)
	if s.Used || token.Spec.ClusterID != cluster.Spec.ClusterID || r.Clock.Now().Add(r.TokenTTL/2).After(s.Ends) {
		return nil, fmt.Sprintf("JoinToken %s is being replaced", key), r.remove(ctx, token)
	}
	found, err = jointoken.Read(ctx, r.live, token)
	switch {
	case errors.Is(err, membership.ErrPending):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	if found.Server != r.hub.Server || !bytes.Equal(found.CA, r.hub.CA) {
		return nil, fmt.Sprintf("JoinToken %s has another address or certificate authority of the hub (%s) than agents "+
			"must use (%s): set the same Server and CA in hub.Options and in install.Options",
			key, found.Server, r.hub.Server), nil
	}
	return found, "", nil
}

// remove deletes a JoinToken, after the objects that it owns.
func (r *Runner) remove(ctx context.Context, token *v1alpha1.JoinToken) error {
	err := r.client.Delete(ctx, token, precondition.Unchanged(token),
		client.PropagationPolicy(metav1.DeletePropagationForeground))
	if apierrors.IsConflict(err) {
		return nil // its controller has written the status meanwhile: the caller reads it again
	}
	return client.IgnoreNotFound(err)
}

// discard deletes the JoinToken of a member.
func (r *Runner) discard(ctx context.Context, m *member, cluster *v1alpha1.MemberCluster) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	token := r.tokenOf(cluster)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(token), token)
	if err == nil {
		err = r.client.Delete(ctx, token, precondition.Unchanged(token))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete JoinToken %s: %w", token.Name, err)
	}
	m.noToken = true
	return nil
}
