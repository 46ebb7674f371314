package admin

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// release has the Secret outlive the MemberCluster: it is the only way back to the member, and is removed last.
func (u *unjoin) release(ctx context.Context) (err error) {
	if u.secret, err = connection(ctx, u.hub, u.ConnectionNamespace, u.name); err != nil || u.secret == nil || len(u.secret.OwnerReferences) == 0 {
		return err
	}
	before := u.secret.DeepCopy()
	u.secret.OwnerReferences = nil
	err = client.IgnoreNotFound(u.hub.Patch(ctx, u.secret, client.MergeFrom(before)))
	return u.hub.explain("take Secret "+display(client.ObjectKeyFromObject(before))+" from its owner", err)
}

// cleanUp removes what Join made, on the member and then on the hub.
func (u *unjoin) cleanUp(ctx context.Context) error {
	const doing = "remove the hub's access from the member"
	secret, err := connection(ctx, u.hub, u.ConnectionNamespace, u.name)
	switch {
	case err != nil:
		return err
	case secret != nil && len(secret.OwnerReferences) > 0:
		u.tell.tell(Step{Doing: doing, Detail: "it stays there, since " + u.name + " has joined again", Done: true})
		return nil
	case u.Member == nil && u.secret == nil:
		if u.cluster == nil || u.cluster.Spec.JoinMode == v1alpha1.JoinPush {
			u.tell.tell(Step{Doing: doing, Detail: "the hub has no Secret of Join's that leads there; what Join may have made is removed by the member's own kubeconfig", Done: true})
		} else if u.Unprepare != nil && u.cluster.Spec.JoinMode == v1alpha1.JoinPull {
			u.tell.tell(Step{Doing: undoing, Detail: "it stays there: the hub has no access, so that is for whoever has installed the agent", Done: true})
		}
		return nil
	}
	if err := u.undo(ctx); err != nil {
		return u.unfinished(secret, err)
	}
	err = u.tell.do(doing, func() (string, error) {
		detail, err := u.withdraw(ctx)
		if lost, is := errors.AsType[*lostError](err); is && u.Force {
			return "it stays there: " + lost.Error(), nil
		}
		return detail, err
	})
	switch {
	case err != nil:
		return u.unfinished(secret, err)
	case secret == nil:
		return nil
	}
	return u.hub.remove(ctx, secret)
}

func (u *unjoin) unfinished(secret *corev1.Secret, err error) error {
	words := u.name + " is out of the fleet, but what the hub had on it is there still"
	if secret != nil {
		words += fmt.Sprintf("; Secret %s is kept, so that another unjoin can remove it, by the member's own kubeconfig if need be, or by force leave it there", client.ObjectKeyFromObject(secret))
	}
	return fmt.Errorf("%s: %w", words, err)
}

// undo takes back what was installed on the member. It comes before the hub's access goes, which may be what it is done by; so a failure that may pass ends
// the Unjoin, and another goes on from there. Of a member that cannot be reached the next step tells.
func (u *unjoin) undo(ctx context.Context) error {
	if u.Unprepare == nil {
		return nil
	}
	return u.tell.do(undoing, func() (string, error) {
		member, end, err := u.connect()
		if err != nil {
			return staying(err.Error(), nil)
		}
		defer end()
		user, err := anotherUser(ctx, member, u.MemberNamespace, origin{hubID: u.hubID, name: u.name})
		if err == nil && user == "" {
			detail, err := unprepare(ctx, member, u.Unprepare)
			return u.passing(detail, err)
		}
		return u.passing(staying(user, err))
	})
}

// passing tells of a member that cannot be reached by what the hub has, and by force of any failure; others are errors.
func (u *unjoin) passing(detail string, err error) (string, error) {
	if err == nil {
		return detail, nil
	}
	if _, lost := errors.AsType[*lostError](u.lost(err)); lost || u.Force {
		return staying(err.Error(), nil)
	}
	return "", err
}

// lostError is about a member that cannot be reached, or not by what the hub has of it.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// withdraw takes away what the hub has on the member.
func (u *unjoin) withdraw(ctx context.Context) (detail string, err error) {
	member, end, err := u.connect()
	if err != nil {
		return "", u.lost(err)
	}
	defer end()
	over, err := u.over(ctx, member)
	switch {
	case err != nil:
		return "", u.lost(err)
	case over:
		return "it was removed already", nil
	}
	if err := u.mark(ctx); err != nil {
		return "", err
	}
	detail, err = withdraw(ctx, member, u.MemberNamespace, origin{hubID: u.hubID, name: u.name})
	if err == nil {
		return detail, nil
	}
	// Somebody else who does the same may have been faster.
	if over, failed := u.over(ctx, member); failed == nil && over {
		return "it was removed already", nil
	}
	return "", u.lost(err)
}

// connect goes to the member by what the caller has, or else by what the hub has.
func (u *unjoin) connect() (member *cluster, end func(), err error) {
	if u.Member == nil {
		return follow(u.secret)
	}
	member, err = connect(Member, u.Member)
	return member, func() {}, err
}

// over reports whether the hub's access has ended by the hand of an Unjoin, which the access then does not show any more.
func (u *unjoin) over(ctx context.Context, member *cluster) (bool, error) {
	_, err := found(ctx, member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if u.Member != nil || !denied(err) {
		return false, err
	}
	now, failed := connection(ctx, u.hub, u.ConnectionNamespace, u.name)
	if failed == nil && (now == nil || now.Annotations[endingAnnotation] != "") {
		return true, nil
	}
	return false, err
}

// mark puts on record that the access is about to end.
func (u *unjoin) mark(ctx context.Context) error {
	if u.secret == nil || u.secret.Annotations[endingAnnotation] != "" {
		return nil
	}
	before := u.secret.DeepCopy()
	if u.secret.Annotations == nil {
		u.secret.Annotations = map[string]string{}
	}
	u.secret.Annotations[endingAnnotation] = "true"
	err := client.IgnoreNotFound(u.hub.Patch(ctx, u.secret, client.MergeFrom(before)))
	return u.hub.explain("mark Secret "+display(client.ObjectKeyFromObject(before)), err)
}

// lost marks the errors for which there is nothing to be done by what the hub has.
func (u *unjoin) lost(err error) error {
	unreachable, is := errors.AsType[*UnreachableError](err)
	_, invalid := errors.AsType[*membership.InvalidError](err)
	if is && unreachable.Which == Member || u.Member == nil && (invalid || denied(err)) {
		return &lostError{err}
	}
	return err
}

// denied reports whether an API server did not take a credential, or did not let it do something.
func denied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }
