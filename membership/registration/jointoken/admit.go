package jointoken

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// remembered is the maximum number of cluster IDs in status.usedBy.
const remembered = 100

// Check verifies that a request was made with the JoinToken that it names, and that the token admits it ([Admit]). It
// returns the JoinToken. An [*membership.InvalidError] means that the request is refused permanently; any other error
// may be temporary. Check does not verify the request's signature: call registration.Verify first. A cluster whose
// claim is recorded needs no token any more: do not call Check for it again.
//
// Reader must not be a cache, so that a request is not verified with the key of a token that was replaced, and Secrets
// are not kept in memory. It needs get on jointokens and secrets in the registration namespace.
func Check(ctx context.Context, reader client.Reader, request *v1alpha1.JoinRequest) (*v1alpha1.JoinToken, error) {
	proof := request.Spec.Token
	if proof == nil {
		return nil, &membership.InvalidError{Field: "spec.token", Problem: "is not set"}
	}
	key := types.NamespacedName{Namespace: request.Namespace, Name: proof.Name}
	token := &v1alpha1.JoinToken{}
	if err := reader.Get(ctx, key, token); apierrors.IsNotFound(err) {
		return nil, refused(proof.Name, "does not exist")
	} else if err != nil {
		return nil, fmt.Errorf("get JoinToken %s: %w", key, err)
	}
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get the Secret of JoinToken %s: %w", key, err)
	}
	// The Secret of an earlier token of the same name does not prove this token.
	if !metav1.IsControlledBy(secret, token) {
		return nil, fmt.Errorf("the Secret %s does not belong to the JoinToken of that name", key)
	}
	if err := registration.VerifyToken(request, macKey(secret)); err != nil {
		return nil, err
	}
	if err := Admit(token, request); err != nil {
		return nil, err
	}
	return token, nil
}

// Admit decides whether a token admits a request that was made with it: the request was created before the token
// expired, by the cluster that the token is bound to, and the token had uses left or the cluster was counted already.
// The error is an [*membership.InvalidError]. Admit performs no I/O. It uses the API server's clock, in the timestamps
// of both objects.
func Admit(token *v1alpha1.JoinToken, request *v1alpha1.JoinRequest) error {
	if err := registration.CheckLabels("spec.labels", token.Spec.Labels); err != nil {
		return refused(token.Name, "is not valid: "+err.Error())
	}
	if end := endOf(token); !end.IsZero() && !request.CreationTimestamp.Time.Before(end) {
		return refused(token.Name, "expired at "+end.UTC().Format(time.RFC3339))
	}
	if bound := token.Spec.ClusterID; bound != "" && bound != request.Spec.ClusterID {
		return refused(token.Name, "is for another cluster")
	}
	if usedUp(token) && !counted(token, request.Spec.ClusterID) {
		return refused(token.Name, "is used up")
	}
	return nil
}

// AdmitLabels decides whether the labels of a request may become those of a new MemberCluster. If the token lists
// allowed labels, each label of the request must be among them. Otherwise, and without a token (nil), the request must
// not have a label with a protected key. A label that the token replaces (spec.labels) is always admitted. The error
// is an [*membership.InvalidError]. AdmitLabels performs no I/O.
func AdmitLabels(token *v1alpha1.JoinToken, request *v1alpha1.JoinRequest, protected []string) error {
	for _, key := range slices.Sorted(maps.Keys(request.Spec.Labels)) {
		value := request.Spec.Labels[key]
		if token != nil {
			if _, replaced := token.Spec.Labels[key]; replaced {
				continue
			}
		}
		refused := func(problem string) error {
			return &membership.InvalidError{Field: fmt.Sprintf("spec.labels[%q]", key), Problem: problem}
		}
		switch {
		case token == nil && slices.Contains(protected, key):
			return refused("decides which ClusterSets select the cluster: leave it out, and let an administrator of the hub " +
				"set it on the MemberCluster")
		case token == nil:
		case len(token.Spec.AllowedLabels) > 0:
			if !allowed(token.Spec.AllowedLabels, key, value) {
				return refused(fmt.Sprintf("the value %q is not allowed by JoinToken %q: leave the label out, or add it to "+
					"spec.allowedLabels or spec.labels of the JoinToken", value, token.Name))
			}
		case slices.Contains(protected, key):
			return refused(fmt.Sprintf("decides which ClusterSets select the cluster: leave it out, or add it to "+
				"spec.allowedLabels or spec.labels of JoinToken %q", token.Name))
		}
	}
	return nil
}

func allowed(labels []v1alpha1.AllowedLabel, key, value string) bool {
	return slices.ContainsFunc(labels, func(l v1alpha1.AllowedLabel) bool {
		return l.Key == key && (len(l.Values) == 0 || slices.Contains(l.Values, value))
	})
}

// MemberUID returns the UID of the MemberCluster that a token admits; empty: any. It is the UID of the token's owner.
// A token for a member neither creates another MemberCluster nor admits a MemberCluster that was created again with
// its name.
func MemberUID(token *v1alpha1.JoinToken) types.UID {
	for _, owner := range token.OwnerReferences {
		if owner.Kind == "MemberCluster" && owner.APIVersion == v1alpha1.GroupVersion.String() {
			return owner.UID
		}
	}
	return ""
}

func refused(token, problem string) error {
	return &membership.InvalidError{Field: "spec.token.name", Problem: fmt.Sprintf(
		"JoinToken %q %s: use the join.yaml of another JoinToken", token, problem)}
}

// Count records in a token's status that a cluster is admitted with it; call it immediately before the cluster is
// admitted. It does not count a cluster again that is among the last hundred in status.usedBy, so that a hub that was
// killed between the two steps can repeat them. The token must be one that [Check] returned: the write succeeds only
// on the checked version, so maxUses is never exceeded. After a conflict (errors.IsConflict of apimachinery), call
// Check again. Writer needs patch on jointokens/status.
func Count(ctx context.Context, writer client.StatusClient, token *v1alpha1.JoinToken, clusterID string) error {
	if counted(token, clusterID) {
		return nil
	}
	if usedUp(token) {
		return refused(token.Name, "is used up")
	}
	patch := client.MergeFromWithOptions(token.DeepCopy(), client.MergeFromWithOptimisticLock{})
	count(&token.Status, clusterID)
	if err := writer.Status().Patch(ctx, token, patch); err != nil {
		return fmt.Errorf("count cluster %s on JoinToken %s/%s: %w", clusterID, token.Namespace, token.Name, err)
	}
	return nil
}

func count(status *v1alpha1.JoinTokenStatus, clusterID string) {
	status.Uses++
	status.UsedBy = append(status.UsedBy, clusterID)
	if over := len(status.UsedBy) - remembered; over > 0 {
		status.UsedBy = status.UsedBy[over:]
	}
}

// Acceptor accepts the clusters whose JoinToken has spec.autoAccept, and holds all others.
type Acceptor struct {
	// Reader gets JoinTokens; it may be a cache.
	Reader client.Reader
}

var _ membership.Acceptor = Acceptor{}

// Accept never denies: it is not called for a request that its token does not admit.
func (a Acceptor) Accept(ctx context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance, error) {
	hold := membership.Acceptance{Decision: membership.Hold}
	if request.Spec.Token == nil {
		return hold, nil
	}
	token := &v1alpha1.JoinToken{}
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Spec.Token.Name}
	if err := a.Reader.Get(ctx, key, token); err != nil {
		return hold, fmt.Errorf("get JoinToken %s: %w", key, err)
	}
	return Acceptance(token), nil
}

// Acceptance returns the decision of a token on the clusters that it admits.
func Acceptance(token *v1alpha1.JoinToken) membership.Acceptance {
	if !token.Spec.AutoAccept {
		return membership.Acceptance{Decision: membership.Hold}
	}
	return membership.Acceptance{Decision: membership.Accept, Reason: fmt.Sprintf("JoinToken %s accepts clusters "+
		"automatically",
		token.Name)}
}
