package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// CleanOptions say how [Clean] cleans a member.
type CleanOptions struct {
	// Namespace of the agent. Empty: muster-system.
	Namespace string
	// Cleaners take back what the hub had applied, in their order: those that the agent has. Nil: nothing but membership's own is removed.
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
// agent's Secrets, then what was installed, then what [Join] made, and at last the agent's namespace, if these functions made that and nothing else is
// in it. No agent may be running there: it would have what it needs to clean up by itself, and might begin anew.
//
// A hub that is still there is not told. Have the member leave by [Unjoin] then.
//
// It needs what the Cleaners and Unprepare need; get and delete on secrets in the agent's namespace; and what Unjoin needs on a member.
func Clean(ctx context.Context, config *rest.Config, o CleanOptions) error {
	o.Namespace = orDefault(o.Namespace, agent.DefaultNamespace)
	o.Resources = orDefault(o.Resources, v1alpha1.DeleteResources)
	o.Timeout = orDefault(o.Timeout, 5*time.Minute)
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
	err = tell.do("remove what the agent remembers", func() (string, error) { return forget(ctx, member, o.Namespace) })
	if err != nil {
		return err
	}
	if o.Unprepare != nil {
		err := tell.do(undoing, func() (string, error) { return unprepare(ctx, member, o.Unprepare) })
		if err != nil {
			return err
		}
	}
	return tell.do("remove the hub's access from the member", func() (string, error) { return withdraw(ctx, member, o.Namespace, origin{}) })
}

// forget deletes the agent's Secrets.
func forget(ctx context.Context, member *cluster, namespace string) (detail string, err error) {
	var gone []string
	for _, name := range agentSecrets {
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
