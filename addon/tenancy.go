package addon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
)

// refusal returns why the namespace of a Placement may not place on the cluster of a decision. Empty: it may. Without a
// namespace, the Placement is a ClusterPlacement.
func (l *addonReconciliation) refusal(namespace string, d *placementv1alpha1.ClusterDecision) string {
	if l.Tenancy == nil {
		return ""
	}
	about := tenancy.Cluster{Binding: d.Binding, Absent: true}
	if m := l.members[d.ClusterName]; m != nil {
		about.Labels, about.Absent = labels.Set(m.Labels), false
	}
	rules := tenancy.ClusterScope()
	if namespace != "" {
		rules = l.Tenancy.Rules(namespace)
	}
	if err := rules.MayPlace(about); err != nil {
		return err.Error()
	}
	return ""
}

// notPermittedMessage names the members that do not get the add-on because their Placement may not select them. Empty:
// there are none.
func notPermittedMessage(decisions []install.Decision) string {
	var members []string
	why := ""
	for _, d := range decisions {
		if d.Reason == install.NotAllowed {
			members = append(members, d.Member)
			if why == "" {
				why = d.Refusal
			}
		}
	}
	if len(members) == 0 {
		return ""
	}
	return fmt.Sprintf("The add-on is not installed on members that its Placements are not permitted to select: %s. %s",
		firstNames(members), why)
}

// tenants watches the bindings while the controllers run.
type tenants struct {
	*shared
	observed chan struct{} // closed when the bindings are observed
}

// Start watches until the context ends.
func (t tenants) Start(ctx context.Context) error {
	if t.Tenancy != nil {
		end, err := t.Tenancy.Watch(ctx, func(namespace string) { t.tenantChanged(ctx, namespace) })
		if err != nil {
			return err
		}
		defer end()
	}
	close(t.observed)
	<-ctx.Done()
	return nil
}

// tenantChanged enqueues the Addons with a Placement in a namespace.
func (c *shared) tenantChanged(ctx context.Context, namespace string) {
	var list v1alpha1.AddonList
	if err := c.cache.List(ctx, &list); err != nil {
		c.log.Error(err, "Failed to list Addons")
	}
	for i := range list.Items {
		for _, p := range list.Items[i].Spec.Install.Placements {
			if p.Namespace == namespace {
				c.enqueueAddon(list.Items[i].Name)
				break
			}
		}
	}
}
