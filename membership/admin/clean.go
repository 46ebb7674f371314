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

// CleanOptions say how [Clean] cleans a member.
type CleanOptions struct {
	// Hub is the name of the hub, as [RegisterOptions] has it. What is of other hubs stays, and the access of one that runs the agent itself. Empty: the one
	// that has no name, and such access.
	Hub string
	// Namespace of the agent. Empty: muster-system.
	Namespace string
	// Cleaners take back what the hub had applied, and no other, in their order: those that the agent has for it. Nil: nothing but membership's own is removed.
	Cleaners []membership.LeaveGate
	// Resources say whether the cleaners delete what the hub had applied, or leave it without an owner. Empty: Delete.
	Resources v1alpha1.ResourcePolicy
	// Unprepare is called with a client of the member, after all that, to take back what the Prepare of [Join] or [Register] has installed,
	// such as RemoveFromMember of package work/crds. It returns why something stays there, which is told as a [Step], or nothing. Nil: what was installed stays.
	Unprepare func(ctx context.Context, member client.Client) (kept string, err error)
	// Timeout bounds the wait for the cleaners. Zero: five minutes.
	Timeout time.Duration
	// Progress is told each step.
	Progress func(Step)
}

// Clean removes what muster has left on a member whose hub is gone, or has forgotten it: what the Cleaners stand for, then the
// agent's Secrets, then what was installed, unless an agent of another hub needs that, then what [Join] made, and at last the agent's namespace, if these
// functions made that and nothing else is in it. No agent may be running there: it would have what it needs to clean up by itself, and might begin anew.
//
// A hub that is still there is not told. Have the member leave by [Unjoin] then.
//
// It needs what the Cleaners and Unprepare need; get and delete on secrets in the agent's namespace, and list, without which it does not know of other hubs
// that have a name; and what Unjoin needs on a member.
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
	tell := teller(o.Progress)
	forgotten := membership.Member{Leave: v1alpha1.LeavePolicy{Resources: o.Resources}}
	for _, cleaner := range o.Cleaners {
		err := tell.await(ctx, "take back "+cleaner.Name(), o.Timeout, func(ctx context.Context) (seen, error) {
			remaining, err := cleaner.Remaining(ctx, forgotten)
			if err != nil {
				return seen{detail: member.explain("take back "+cleaner.Name(), err).Error()}, nil
			}
			return seen{done: len(remaining) == 0, detail: strings.Join(remaining[:min(len(remaining), 3)], ", ")}, nil
		})
		if err != nil {
			return err
		}
	}
	err = tell.do("remove what the agent remembers", func() (string, error) { return forget(ctx, member, o.Namespace, secretsFor(o.Hub)) })
	if err != nil {
		return err
	}
	if o.Unprepare != nil {
		err := tell.do(undoing, func() (string, error) { return o.unprepare(ctx, member) })
		if err != nil {
			return err
		}
	}
	return tell.do("remove the hub's access from the member", func() (string, error) { return o.withdraw(ctx, member) })
}

// unprepare takes back what was installed, unless somebody else needs it.
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

// withdraw takes away what Join made, where that is this hub's, and the namespace.
func (o *CleanOptions) withdraw(ctx context.Context, member *cluster) (detail string, err error) {
	user, err := o.access(ctx, member)
	if err != nil || user != "" {
		return staying(user, err)
	}
	return withdraw(ctx, member, o.Namespace, origin{})
}

// access says that a hub has access which is not the one that is cleaned away; empty: none has.
func (o *CleanOptions) access(ctx context.Context, member *cluster) (string, error) {
	if o.Hub == "" {
		return "", nil
	}
	binding, err := found(ctx, member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil || binding == nil {
		return "", err
	}
	return "ClusterRoleBinding " + accessName + " is of a hub that runs its agent itself", nil
}

// forget deletes the agent's Secrets.
func forget(ctx context.Context, member *cluster, namespace string, secrets agentSecrets) (detail string, err error) {
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
		return "there was nothing", nil
	}
	return fmt.Sprintf("Secrets %s in namespace %s", strings.Join(gone, " and "), namespace), nil
}
