package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// locate determines the desired place of the agent for a hosting member. If there is a problem with the hosting
// member, nothing is moved.
func (l *memberReconciliation) locate(ctx context.Context, named string) error {
	if named == "" || named == l.observed.member.Name {
		return nil
	}
	if !slices.Contains(l.observed.addon.Spec.HostingMembers, named) {
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf(
			"hostingMember %s is not listed in spec.hostingMembers of the Addon: add the member to the list, or choose "+
				"another hosting member", named))
		return nil
	}
	host, err := l.memberNamed(ctx, named)
	if err != nil {
		return err
	}
	switch {
	case host == nil:
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf(
			"hostingMember %s is not a member: let the cluster join the hub, or choose another hosting member", named))
	case leaving(host):
		l.problem(v1alpha1.ReasonUnsupported,
			fmt.Sprintf("hostingMember %s is leaving and removes the agent: choose another hosting member", named))
	case !joined(host):
		l.problem(v1alpha1.ReasonUnsupported,
			fmt.Sprintf("hostingMember %s has not joined yet: wait, or choose another hosting member", named))
	default:
		l.desired.host, l.desired.hosting = host,
			&v1alpha1.HostingStatus{Member: named, Namespace: template.HostingNamespace(l.observed.addon.Name,
				l.observed.member.Name)}
		if l.result.health.Reachable && !healthy(host) {
			l.result.health.Reachable, l.result.health.Hosting = false, named
		}
	}
	return nil
}

// memberNamed returns the member of this name. Nil: it does not exist or has no namespace.
func (c *shared) memberNamed(ctx context.Context, name string) (*membershipv1alpha1.MemberCluster, error) {
	m := &membershipv1alpha1.MemberCluster{}
	switch err := c.cache.Get(ctx, client.ObjectKey{Name: name}, m); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read MemberCluster %s: %w", name, err)
	case m.Status.Namespace == "":
		return nil, nil
	}
	return m, nil
}

func hostingNamespace(in *Input) string {
	if in.Hosting == nil {
		return ""
	}
	return in.Hosting.Namespace
}

// moves reports whether the agent moves to another cluster.
func (l *memberReconciliation) moves() bool {
	return l.assigned.revision != "" && !equality.Semantic.DeepEqual(l.object.Status.Hosting, l.desired.hosting)
}

// site is a cluster with a part of the add-on, by the namespace of its Works.
type site struct {
	namespace string
	part      *part
}

// sites returns the sites of an add-on. The cluster of the agent is the first one, the member itself the last one.
func (l *memberReconciliation) sites(made *manifests) []site {
	own := site{l.key.Namespace, &made.part}
	if l.desired.host == nil {
		return []site{own}
	}
	return []site{{l.desired.host.Status.Namespace, &made.hosting}, own}
}

// distributeAll updates all Works of the add-on, and reports whether they were up to date. While the agent moves, the
// Works of the former site are kept until the new site has applied its Works.
func (l *memberReconciliation) distributeAll(ctx context.Context, made *manifests,
	next assignment) (current bool, err error) {
	sites := l.sites(made)
	applied, current := true, true
	var errs []error
	for _, s := range sites {
		if l.moves() && !applied {
			break
		}
		works := slices.DeleteFunc(slices.Clone(l.observed.works), func(r *record) bool { return r.Namespace != s.namespace })
		is, err := l.distribute(ctx, &distribution{part: s.part, key: l.key, by: l.object.UID, namespace: s.namespace,
			assigned: next, written: l.written}, works)
		if errs = append(errs, err); err == nil {
			l.access.delivered = append(l.access.delivered, s.namespace)
		}
		current = current && is
		applied = applied && is && !slices.ContainsFunc(works, func(r *record) bool { return !r.applied() })
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	for _, r := range l.observed.works {
		switch elsewhere := !slices.ContainsFunc(sites, func(s site) bool { return s.namespace == r.Namespace }); {
		case !elsewhere || r.existing.Deleting:
		case !applied:
			current = false
		default:
			if err := l.deleteWork(ctx, r, l.object.UID); err != nil {
				return false, err
			}
		}
	}
	return current && (applied || !l.moves()), nil
}

// applied reports whether the member has applied the current generation of the Work.
func (r *record) applied() bool {
	h := &r.health
	return h.Observed == h.Generation && !h.Deleting && h.Applied == metav1.ConditionTrue
}

// workHealth returns the health of the Works, without those of a former site that are being deleted.
func (l *memberReconciliation) workHealth() []health.Work {
	var works []health.Work
	for _, r := range l.observed.works {
		if !r.existing.Deleting || !r.hosted() {
			works = append(works, r.health)
		}
	}
	return works
}

// addonsHostedBy returns the MemberAddons whose agents a member can host.
func (c *shared) addonsHostedBy(ctx context.Context,
	member *membershipv1alpha1.MemberCluster) (found []reconcile.Request) {
	var list v1alpha1.AddonList
	if err := c.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		c.log.Error(err, "Failed to list Addons")
	}
	for i := range list.Items {
		if slices.Contains(list.Items[i].Spec.HostingMembers, member.Name) {
			found = append(found, c.membersOf(ctx, &list.Items[i])...)
		}
	}
	return found
}

// deleteHostedWorks deletes the Works on hosting members of a MemberAddon that does not exist, if their deletion was
// requested before its finalizer was removed, as a forced leave of the member does. Works in the member's own
// namespace are deleted with the namespace.
func (c *shared) deleteHostedWorks(ctx context.Context, key types.NamespacedName) error {
	works, hooks, err := c.works(key)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(append(works, hooks...), func(r *record) bool { return !r.hosted() || r.existing.Deleting })
	if len(left) == 0 {
		return nil
	}
	if err := c.live.Get(ctx, key, &v1alpha1.MemberAddon{}); err == nil {
		return nil // the cache will contain it soon
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read MemberAddon %s: %w", key, err)
	}
	for _, r := range left {
		is, err := c.deletable(ctx, r)
		if err != nil {
			return err
		}
		if !is {
			c.log.Info("Keeping a Work on a hosting member without a MemberAddon", "work", r.Name, "namespace", r.Namespace,
				"memberaddon", key)
			continue
		}
		if err := c.deleteWork(ctx, r, ""); err != nil {
			return err
		}
	}
	return nil
}

// locateExisting determines the place of the agent for a removal: the assigned one, and not the desired one.
func (l *memberReconciliation) locateExisting(ctx context.Context) (err error) {
	l.desired.host, l.desired.hosting = nil, l.object.Status.Hosting
	if l.desired.hosting == nil && l.object.Status.AppliedRevision == "" && l.observed.member != nil {
		// The status does not contain the assignment.
		for _, r := range l.observed.works {
			if host, err := l.memberIn(ctx, r.Namespace); err != nil {
				return err
			} else if r.hosted() && host != nil {
				l.desired.hosting = &v1alpha1.HostingStatus{Member: host.Name, Namespace: template.HostingNamespace(l.key.Name,
					l.observed.member.Name)}
			}
		}
	}
	if l.desired.hosting != nil {
		l.desired.host, err = l.memberNamed(ctx, l.desired.hosting.Member)
	}
	return err
}

// waitedFor returns the member whose agent must act next, and its name if it hosts the add-on's agent. The Works of
// the member itself are deleted first, because the add-on's agent on the hosting member may be needed to clean up the
// member.
func (l *memberReconciliation) waitedFor(
	ctx context.Context) (member *membershipv1alpha1.MemberCluster, hosting string, err error) {
	for _, works := range [][]*record{l.observed.works, l.observed.hooks} {
		own, hosted := split(works)
		switch {
		case len(own) > 0:
			return l.observed.member, "", nil
		case len(hosted) > 0:
			return l.leastReachable(ctx, hosted)
		}
	}
	return l.observed.member, "", nil
}

// leastReachable returns the least reachable hosting member of Works. There are several only if the agent was moving.
func (l *memberReconciliation) leastReachable(ctx context.Context,
	hosted []*record) (worst *membershipv1alpha1.MemberCluster, name string, err error) {
	for i, r := range hosted {
		m, err := l.memberIn(ctx, r.Namespace)
		if err != nil {
			return nil, "", err
		}
		if i == 0 || worst == nil || m != nil && !healthy(m) {
			worst = m
		}
	}
	switch {
	case worst != nil:
		return worst, worst.Name, nil
	case l.desired.hosting != nil:
		return nil, l.desired.hosting.Member, nil
	}
	return nil, "of namespace " + hosted[0].Namespace, nil
}

func split(works []*record) (own, hosted []*record) {
	for _, r := range works {
		if r.hosted() {
			hosted = append(hosted, r)
		} else {
			own = append(own, r)
		}
	}
	return own, hosted
}

// listLive lists the Works of the add-on from the API server, in the member's own namespace and in all other
// namespaces that can contain Works which the cache does not contain yet.
func (l *memberReconciliation) listLive(ctx context.Context) error {
	namespaces := map[string]bool{l.key.Namespace: true}
	for _, r := range slices.Concat(l.observed.works, l.observed.hooks) {
		namespaces[r.Namespace] = true
	}
	for work := range l.written {
		namespaces[work.Namespace] = true
	}
	if l.desired.host != nil {
		namespaces[l.desired.host.Status.Namespace] = true
	}
	l.observed.works, l.observed.hooks = nil, nil
	for namespace := range namespaces {
		var list workv1alpha1.WorkList
		if err := l.live.List(ctx, &list, client.InNamespace(namespace),
			client.MatchingLabels(workLabels(l.key, namespace))); err != nil {
			return fmt.Errorf("list Works of add-on %s in namespace %s: %w", l.key, namespace, err)
		}
		for i := range list.Items {
			switch r := recordOf(&list.Items[i]); {
			case r.owner() != l.key: // the Work belongs to another member whose agent runs here
			case r.isHooks():
				l.observed.hooks = append(l.observed.hooks, r)
			default:
				l.observed.works = append(l.observed.works, r)
			}
		}
	}
	return nil
}
