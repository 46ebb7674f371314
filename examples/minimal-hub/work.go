package main

import (
	"context"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	workagent "github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/leave"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// works is what runs beside an agent to apply Works: for as long as the cluster is a member, and with the agent's own access to
// the hub.
func works(config *rest.Config) agent.Companion {
	return agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
		a, err := workagent.New(workagent.Options{Hub: hub.Config, HubName: hub.Name, Namespace: hub.Member.Namespace, Member: config})
		if err != nil {
			return err
		}
		return a.Start(ctx)
	})
}

// cleaner takes back what Works have left when the hub has forgotten the member.
func cleaner(config *rest.Config) (membership.LeaveGate, error) {
	c, err := workagent.NewCleaner(workagent.Options{Member: config})
	if err != nil {
		return nil, err
	}
	return leave.Cleaner(c.Clean), nil
}

// worksOf is how the Works of a member are doing, as in "apps.shop-0 3/3".
func (f *fleet) worksOf(ctx context.Context, namespace string) string {
	var list v1alpha1.WorkList
	if namespace == "" || f.client.List(ctx, &list, client.InNamespace(namespace)) != nil || len(list.Items) == 0 {
		return "-"
	}
	var parts []string
	for _, work := range list.Items {
		parts = append(parts, work.Name+" "+orDash(work.Status.Ready))
	}
	return strings.Join(parts, ", ")
}
