package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// CleanOptions are the options of [Clean].
type CleanOptions struct {
	// Hub is the name of the hub, as in [RegisterOptions]. Objects of other hubs stay, as does the access of a hub that
	// runs the agent itself. Default: the hub without a name, including such access.
	Hub string
	// Namespace of the agent. Default: muster-system.
	Namespace string
	// Cleaners remove the objects that the hub had applied, in this order: the cleaners of the agent for that hub. Nil:
	// only objects of membership are removed.
	Cleaners []membership.LeaveGate
	// Resources defines whether the cleaners delete or orphan the applied objects. Default: Delete.
	Resources v1alpha1.ResourcePolicy
	// Unprepare is called with a client of the member after the other steps, to remove the objects that the Prepare of
	// [Join] or [Register] installed, for example RemoveFromMember of package work/crds. It returns the reason why
	// objects stay, which is reported as a [Step], or "". Nil: installed objects stay.
	Unprepare func(ctx context.Context, member client.Client) (kept string, err error)
	// Timeout for the cleaners. Default: five minutes.
	Timeout time.Duration
	// Progress is called with each step.
	Progress func(Step)
}

// Clean removes the remains of muster from a member whose hub does not exist or has deregistered it: the objects of
// the Cleaners, then the agent's Secrets, then installed definitions unless an agent of another hub needs them, then
// the objects of [Join], and finally the agent's namespace if these functions created it and it is unused. No agent
// must be running on the member: a running agent might register again.
//
// Clean does not inform an existing hub. Use [Unjoin] in that case.
//
// Clean requires the permissions of the Cleaners and of Unprepare; get and delete on secrets in the agent's namespace,
// and list to find other hubs with a name; and the permissions of Unjoin on a member.
func Clean(ctx context.Context, config *rest.Config, o CleanOptions) error {
	o.Namespace = orDefault(o.Namespace, agent.DefaultNamespace)
	o.Resources = orDefault(o.Resources, v1alpha1.DeleteResources)
	o.Timeout = orDefault(o.Timeout, 5*time.Minute)
	if err := checkHub(o.Hub); err != nil {
		return err
	}
	member, err := connect(Member, config)
	if err != nil {
		return err
	}
	progress := reporter(o.Progress)
	deregistered := membership.Member{Leave: v1alpha1.LeavePolicy{Resources: o.Resources}}
	for _, cleaner := range o.Cleaners {
		err := progress.await(ctx, "clean up "+cleaner.Name(), o.Timeout, func(ctx context.Context) (seen, error) {
			remaining, err := cleaner.Remaining(ctx, deregistered)
			if err != nil {
				return seen{detail: member.explain("clean up "+cleaner.Name(), err).Error()}, nil
			}
			return seen{done: len(remaining) == 0, detail: strings.Join(remaining[:min(len(remaining), 3)], ", ")}, nil
		})
		if err != nil {
			return err
		}
	}
	err = progress.do("remove the state of the agent",
		func() (string, error) { return deleteAgentSecrets(ctx, member, o.Namespace, secretsFor(o.Hub)) })
	if err != nil {
		return err
	}
	if o.Unprepare != nil {
		err := progress.do(unprepareStep, func() (string, error) { return o.unprepare(ctx, member) })
		if err != nil {
			return err
		}
	}
	return progress.do("remove the hub's access from the member",
		func() (string, error) { return o.removeAccess(ctx, member) })
}

// unprepare removes installed objects unless another hub needs them.
func (o *CleanOptions) unprepare(ctx context.Context, member *cluster) (detail string, err error) {
	user, err := o.access(ctx, member)
	if err == nil && user == "" {
		user, err = anotherAgent(ctx, member, o.Namespace, secretsFor(o.Hub))
	}
	if err != nil || user != "" {
		return staying(user, err)
	}
	return unprepare(ctx, member, o.Unprepare)
}

// removeAccess removes the objects of Join if they belong to this hub, and the namespace.
func (o *CleanOptions) removeAccess(ctx context.Context, member *cluster) (detail string, err error) {
	user, err := o.access(ctx, member)
	if err != nil || user != "" {
		return staying(user, err)
	}
	return removeAccess(ctx, member, o.Namespace, origin{})
}

// access describes the remaining access of another hub; empty: none.
func (o *CleanOptions) access(ctx context.Context, member *cluster) (string, error) {
	if o.Hub == "" {
		return "", nil
	}
	binding, err := found(ctx, member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil || binding == nil {
		return "", err
	}
	return "ClusterRoleBinding " + accessName + " belongs to a hub that runs its agent itself", nil
}

// deleteAgentSecrets deletes the agent's Secrets.
func deleteAgentSecrets(ctx context.Context, member *cluster, namespace string, secrets agentSecrets) (detail string,
	err error) {
	var gone []string
	for _, name := range secrets.names() {
		secret, err := found(ctx, member, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
		if err != nil {
			return "", err
		}
		if secret == nil {
			continue
		}
		if err := member.remove(ctx, secret); err != nil {
			return "", err
		}
		gone = append(gone, name)
	}
	if len(gone) == 0 {
		return "nothing to remove", nil
	}
	return fmt.Sprintf("Secrets %s in namespace %s", strings.Join(gone, " and "), namespace), nil
}
