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

// remembered is how many cluster IDs status.usedBy has room for.
const remembered = 100

// Check returns the JoinToken that a request was made with, after it has verified that it was, and that the
// token lets it through ([Admit]). An [*membership.InvalidError] refuses the request for good; any other error may
// pass. The request's own signature is not looked at: call registration.Verify first. A cluster that has been let in
// needs no token any more: do not call Check again when its claim is on record.
//
// Reader must not be a cache, lest a cluster be judged by the key of a token that was replaced, and so that Secrets
// are not held in memory. It needs get on jointokens and secrets in the registration namespace.
func Check(ctx context.Context, reader client.Reader, request *v1alpha1.JoinRequest) (*v1alpha1.JoinToken, error) {
	proof := request.Spec.Token
	if proof == nil {
		return nil, &membership.InvalidError{Field: "spec.token", Problem: "is not set"}
	}
	key := types.NamespacedName{Namespace: request.Namespace, Name: proof.Name}
	token := &v1alpha1.JoinToken{}
	if err := reader.Get(ctx, key, token); apierrors.IsNotFound(err) {
		return nil, refused(proof.Name, "is not there, or not any more")
	} else if err != nil {
		return nil, fmt.Errorf("get JoinToken %s: %w", key, err)
	}
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get the Secret of JoinToken %s: %w", key, err)
	}
	// What is left of an earlier token of that name proves nothing.
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

// Admit decides whether a token lets a request through that was made with it: made before the token ended, by
// the cluster that the token is bound to, while there were uses left or by a cluster that was counted already. The
// error is an [*membership.InvalidError]. It is pure; time is the API server's, in the timestamps of both.
func Admit(token *v1alpha1.JoinToken, request *v1alpha1.JoinRequest) error {
	if err := registration.CheckLabels("spec.labels", token.Spec.Labels); err != nil {
		return refused(token.Name, "is not valid: "+err.Error())
	}
	if end := endOf(token); !end.IsZero() && !request.CreationTimestamp.Time.Before(end) {
		return refused(token.Name, "ended at "+end.UTC().Format(time.RFC3339))
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
// not have a label with a protected key. A label that the token replaces (spec.labels) is always admitted. The error is
// an [*membership.InvalidError]. AdmitLabels is pure.
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

// MemberUID returns the UID of the MemberCluster that a token is for; empty: for any. It is the one that owns the
// token: what was made for a member neither makes another one nor goes to one that was made anew under its name.
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
		"JoinToken %q %s: ask for a join.yaml of another one", token, problem)}
}

// Count records on a token that a cluster comes in with it; call it right before the cluster is let in. A cluster that
// is remembered, by the hundred that came last, is not counted again, so that a hub which died between the two can
// begin anew. The token must be one that [Check] returned: the write succeeds only on what was checked, so that maxUses
// is never exceeded. After a conflict, which errors.IsConflict of apimachinery tells, check again. Writer needs patch
// on jointokens/status.
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

// Acceptor accepts the clusters that come with a JoinToken which says so (spec.autoAccept), and holds all others.
type Acceptor struct {
	// Reader gets JoinTokens; it may be a cache.
	Reader client.Reader
}

var _ membership.Acceptor = Acceptor{}

// Accept never denies: what a token does not let through is no longer asked about.
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

// Acceptance is what a token says of the clusters that it lets through.
func Acceptance(token *v1alpha1.JoinToken) membership.Acceptance {
	if !token.Spec.AutoAccept {
		return membership.Acceptance{Decision: membership.Hold}
	}
	return membership.Acceptance{Decision: membership.Accept, Reason: fmt.Sprintf("JoinToken %s accepts by itself",
		token.Name)}
}
