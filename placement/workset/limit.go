package workset

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/tenancy"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// limit restricts the objects that the namespace of a WorkSet may distribute to a cluster. The zero value restricts
// nothing.
type limit struct {
	binding string
	limits  *tenancy.Limits // nil: no limits
	refusal string          // the reason why no Work may be written; empty: Works may be written
}

// notAllowedError is the reason why the rules of the namespace do not allow the Works of a cluster.
type notAllowedError string

func (e notAllowedError) Error() string { return string(e) }

// limitOf returns the limit of a cluster that was selected by a binding. A selected cluster without a binding was
// selected before tenancy was enabled, and keeps its Works without limits. This exception does not apply to clusters
// that are not selected.
func (l *reconciliation) limitOf(cluster *scheduler.Cluster, binding string, selected bool) limit {
	if l.Tenancy == nil {
		return limit{}
	}
	about := tenancy.Cluster{Binding: binding, Absent: cluster == nil}
	if cluster != nil {
		about.Labels, about.Absent = labels.Set(cluster.Labels), cluster.Absent
	}
	switch d := l.rulesOf(l.set.Namespace).Decide(about); {
	case d.Access == tenancy.Denied:
		return limit{refusal: d.Message}
	case d.Access == tenancy.Allowed:
		return limit{binding: d.Binding, limits: d.Limits}
	case d.Limits != nil:
		return limit{binding: binding, limits: d.Limits}
	case binding == "" && selected:
		return limit{}
	case binding == "":
		return limit{refusal: fmt.Sprintf("no ClusterSetBinding of namespace %s grants the cluster", l.set.Namespace)}
	default:
		return limit{refusal: fmt.Sprintf("ClusterSetBinding %s/%s, which granted the cluster, was not observed: restore "+
			"the ClusterSetBinding",
			l.set.Namespace, binding)}
	}
}

// rulesOf returns the rules of a namespace or, if the namespace is empty, those of cluster-scoped objects.
func (c *controller) rulesOf(namespace string) *tenancy.Rules {
	if namespace == "" {
		return tenancy.ClusterScope()
	}
	return c.Tenancy.Rules(namespace)
}

// check returns an error if the limit does not allow the objects or the executor of the template.
func (l limit) check(template *v1alpha1.WorkTemplate, objects []bundle.Object) error {
	if l.refusal != "" {
		return notAllowedError(l.refusal)
	}
	if l.limits == nil {
		return nil
	}
	if want, has := l.limits.ServiceAccount, template.Executor; want != nil && has != nil &&
		(has.Namespace != want.Namespace || has.Name != want.Name) {
		return notAllowedError(fmt.Sprintf("spec.work.executor: ClusterSetBinding %s allows ServiceAccount %s/%s "+
			"only, not %s/%s",
			l.binding, want.Namespace, want.Name, has.Namespace, has.Name))
	}
	var refused []string
	for i := range objects {
		if id := objects[i].Key(); !l.limits.AllowsKind(id.Group, id.Kind) {
			refused = append(refused, strings.TrimSpace(fmt.Sprintf("%s %s", id.Kind, id.Name)))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	text := strings.Join(refused[:min(len(refused), maxRefused)], ", ")
	if more := len(refused) - maxRefused; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return notAllowedError(fmt.Sprintf("ClusterSetBinding %s does not allow the kinds of these objects in "+
		"spec.kinds: %s", l.binding, text))
}

// maxRefused is the maximum number of objects that a message lists.
const maxRefused = 5

// executor returns the executor of the Works: that of the template or, if it has none, that of the binding.
func (l limit) executor(template *v1alpha1.WorkTemplate) *workv1alpha1.Executor {
	if template.Executor != nil || l.limits == nil || l.limits.ServiceAccount == nil {
		return template.Executor
	}
	return &workv1alpha1.Executor{Namespace: l.limits.ServiceAccount.Namespace, Name: l.limits.ServiceAccount.Name}
}

// maySelect returns the reason why a WorkSet may not select an object of the hub. It returns nil if Options.Allow or a
// SelectionGrant allows the object. The namespaces of members contain objects that the hub writes for them, such as
// credentials of add-ons.
func (c *controller) maySelect(owner types.NamespacedName, target Target) error {
	if owner.Namespace == "" {
		_, ofMember := c.fleet.in(target.Namespace)
		if !ofMember && tenancy.ClusterScope().MaySelect(tenancy.SelectableObject{
			Group: target.Group, Kind: target.Kind, Namespace: target.Namespace, Name: target.Name,
		}) {
			return nil
		}
		return fmt.Errorf("the ClusterWorkSet selects %s, which belongs to Kubernetes or muster: name other objects, and "+
			"Namespaces by their names", target)
	}
	err := c.Allow(owner, target)
	if err == nil || c.Tenancy == nil {
		return err
	}
	if c.Tenancy.Rules(owner.Namespace).MaySelect(tenancy.SelectableObject{
		Group: target.Group, Kind: target.Kind, Namespace: target.Namespace, Name: target.Name,
	}) {
		return nil
	}
	return err
}

// reportRefused records a problem if the rules of the namespace exclude clusters from the WorkSet.
func (l *reconciliation) reportRefused() {
	var first *target
	count := 0
	for _, t := range l.clusters {
		if !t.refused {
			continue
		}
		if count++; first == nil {
			first = t
		}
	}
	if first != nil {
		l.problem(v1alpha1.ReasonNotAllowed, "%d of %d clusters cannot receive the WorkSet, such as %s: %s", count,
			len(l.clusters), first.name,
			first.waits)
	}
}

// watchTenancy enqueues the WorkSets of a namespace when its rules may have changed.
func (f *feed) watchTenancy(ctx context.Context) error {
	if f.Tenancy != nil {
		end, err := f.Tenancy.Watch(ctx, f.tenantChanged)
		if err != nil {
			return err
		}
		defer end()
	}
	close(f.tenants)
	<-ctx.Done()
	return nil
}

func (c *controller) tenantChanged(namespace string) {
	c.sets.mu.Lock()
	var found []*state
	for set, s := range c.sets.states {
		if set.Namespace == namespace {
			found = append(found, s)
		}
	}
	c.sets.mu.Unlock()
	for _, s := range found {
		c.enqueue(s.key)
	}
}
