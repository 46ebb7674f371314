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

// release removes the owner of the Secret, which is the only connection to the member and is deleted last.
func (u *unjoin) release(ctx context.Context) (err error) {
	if u.secret, err = connection(ctx, u.hub, u.ConnectionNamespace, u.name); err != nil || u.secret == nil ||
		len(u.secret.OwnerReferences) == 0 {
		return err
	}
	before := u.secret.DeepCopy()
	u.secret.OwnerReferences = nil
	err = client.IgnoreNotFound(u.hub.Patch(ctx, u.secret, client.MergeFrom(before)))
	return u.hub.explain("remove the owner of Secret "+display(client.ObjectKeyFromObject(before)), err)
}

// cleanUp removes the objects of Join, on the member and then on the hub.
func (u *unjoin) cleanUp(ctx context.Context) error {
	const doing = "remove the hub's access from the member"
	secret, err := connection(ctx, u.hub, u.ConnectionNamespace, u.name)
	switch {
	case err != nil:
		return err
	case secret != nil && len(secret.OwnerReferences) > 0:
		u.progress.report(Step{Doing: doing, Detail: "the access stays, because " + u.name + " has joined again", Done: true})
		return nil
	case u.Member == nil && u.secret == nil:
		if u.cluster == nil || u.cluster.Spec.JoinMode == v1alpha1.JoinPush {
			u.progress.report(Step{Doing: doing, Detail: "the hub has no kubeconfig Secret of Join; use the member's own " +
				"kubeconfig to remove the objects of Join from the member", Done: true})
		} else if u.Unprepare != nil && u.cluster.Spec.JoinMode == v1alpha1.JoinPull {
			u.progress.report(Step{Doing: unprepareStep, Detail: "the installed objects stay: the hub has no access to the " +
				"member, so remove them together with the agent",
				Done: true})
		}
		return nil
	}
	if err := u.unprepareMember(ctx); err != nil {
		return u.unfinished(secret, err)
	}
	err = u.progress.do(doing, func() (string, error) {
		detail, err := u.removeAccess(ctx)
		if lost, is := errors.AsType[*lostError](err); is && u.Force {
			return "the access stays: " + lost.Error(), nil
		}
		return detail, err
	})
	switch {
	case err != nil:
		return u.unfinished(secret, err)
	case secret == nil:
		return nil
	}
	return u.hub.removeRequested(ctx, secret)
}

func (u *unjoin) unfinished(secret *corev1.Secret, err error) error {
	words := u.name + " has left, but the hub still has access to the member"
	if secret != nil {
		words += fmt.Sprintf("; Secret %s is kept: repeat the unjoin to remove the access, with the member's own "+
			"kubeconfig if necessary, or with force to leave the access in place", client.ObjectKeyFromObject(secret))
	}
	return fmt.Errorf("%s: %w", words, err)
}

// unprepareMember removes installed objects from the member before the access, because their removal may need the
// access. A temporary failure ends Unjoin, and another call continues. The next step reports an unreachable member.
func (u *unjoin) unprepareMember(ctx context.Context) error {
	if u.Unprepare == nil {
		return nil
	}
	return u.progress.do(unprepareStep, func() (string, error) {
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

// passing reports an unreachable member, or with Force any failure, as a step; other failures are errors.
func (u *unjoin) passing(detail string, err error) (string, error) {
	if err == nil {
		return detail, nil
	}
	if _, lost := errors.AsType[*lostError](u.lost(err)); lost || u.Force {
		return staying(err.Error(), nil)
	}
	return "", err
}

// lostError means that a member cannot be reached with the stored access.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// removeAccess removes the hub's access from the member.
func (u *unjoin) removeAccess(ctx context.Context) (detail string, err error) {
	member, end, err := u.connect()
	if err != nil {
		return "", u.lost(err)
	}
	defer end()
	over, err := u.accessRemoved(ctx, member)
	switch {
	case err != nil:
		return "", u.lost(err)
	case over:
		return "the access was removed already", nil
	}
	if err := u.mark(ctx); err != nil {
		return "", err
	}
	detail, err = removeAccess(ctx, member, u.MemberNamespace, origin{hubID: u.hubID, name: u.name})
	if err == nil {
		return detail, nil
	}
	// A concurrent Unjoin may have been faster.
	if over, failed := u.accessRemoved(ctx, member); failed == nil && over {
		return "the access was removed already", nil
	}
	return "", u.lost(err)
}

// connect uses the config of the caller, or else the stored access.
func (u *unjoin) connect() (member *cluster, end func(), err error) {
	if u.Member == nil {
		return follow(u.secret)
	}
	member, err = connect(Member, u.Member)
	return member, func() {}, err
}

// accessRemoved reports whether an Unjoin has already removed the hub's access.
func (u *unjoin) accessRemoved(ctx context.Context, member *cluster) (bool, error) {
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

// mark records that the access is about to be removed.
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

// lost returns a lostError for errors that occur again with the stored access.
func (u *unjoin) lost(err error) error {
	unreachable, is := errors.AsType[*UnreachableError](err)
	_, invalid := errors.AsType[*membership.InvalidError](err)
	if is && unreachable.Which == Member || u.Member == nil && (invalid || denied(err)) {
		return &lostError{err}
	}
	return err
}

// denied reports whether an API server rejected a credential or a permission.
func denied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }
