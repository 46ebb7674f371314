package admin

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// undoing is what is done about what was installed on a member.
const undoing = "remove what was installed on the member"

// unprepare has the caller remove what it had installed.
func unprepare(ctx context.Context, member *cluster, act func(context.Context, client.Client) (kept string, err error)) (detail string, err error) {
	kept, err := act(ctx, member)
	return staying(kept, member.explain(undoing, err))
}

// staying tells what stays on a member, which is no failure, and that goes for what the user may not remove as well.
func staying(kept string, err error) (detail string, _ error) {
	if apierrors.IsForbidden(err) {
		kept, err = err.Error(), nil
	}
	if kept == "" || err != nil {
		return "", err
	}
	return "it stays there: " + kept, nil
}

// anotherUser says who else may need what was installed on a member; empty: nobody that is known.
func anotherUser(ctx context.Context, member *cluster, namespace string, us origin) (string, error) {
	binding, err := found(ctx, member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return "", err
	}
	if binding != nil && !us.of(binding) {
		return "ClusterRoleBinding " + accessName + " is of another member, or hub", nil
	}
	return anotherAgent(ctx, member, namespace, agentSecrets{})
}

// anotherAgent says which agent may need it, but for that of these Secrets.
func anotherAgent(ctx context.Context, member *cluster, namespace string, but agentSecrets) (string, error) {
	name, err := agentSecret(ctx, member, namespace, but)
	if err != nil || name == "" {
		return "", err
	}
	return fmt.Sprintf("Secret %s/%s is of an agent that is, or shall be, in a fleet", namespace, name), nil
}
