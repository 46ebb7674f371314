package admin

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unprepareStep is the step that removes installed objects from a member.
const unprepareStep = "remove installed objects from the member"

// unprepare calls the Unprepare function of the caller.
func unprepare(ctx context.Context, member *cluster,
	act func(context.Context, client.Client) (kept string, err error)) (detail string, err error) {
	kept, err := act(ctx, member)
	return staying(kept, member.explain(unprepareStep, err))
}

// staying reports remaining objects. Neither these nor a missing permission are an error.
func staying(kept string, err error) (detail string, _ error) {
	if apierrors.IsForbidden(err) {
		kept, err = err.Error(), nil
	}
	if kept == "" || err != nil {
		return "", err
	}
	return "the installed objects stay: " + kept, nil
}

// anotherUser returns another hub or agent that may need the installed objects; empty: none is known.
func anotherUser(ctx context.Context, member *cluster, namespace string, us origin) (string, error) {
	binding, err := found(ctx, member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return "", err
	}
	if binding != nil && !us.of(binding) {
		return "ClusterRoleBinding " + accessName + " belongs to another member or hub", nil
	}
	return anotherAgent(ctx, member, namespace, agentSecrets{})
}

// anotherAgent returns another agent that may need the installed objects.
func anotherAgent(ctx context.Context, member *cluster, namespace string, but agentSecrets) (string, error) {
	name, err := agentSecret(ctx, member, namespace, but)
	if err != nil || name == "" {
		return "", err
	}
	return fmt.Sprintf("Secret %s/%s belongs to an agent that has joined a hub or is about to", namespace, name), nil
}
