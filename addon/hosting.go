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

// locate finds out where the agent is to run, given the member that is named to host it. One that cannot is a problem, and leaves everything where it is.
func (l *memberLook) locate(ctx context.Context, named string) error {
	if named == "" || named == l.member.Name {
		return nil
	}
	if !slices.Contains(l.addon.Spec.HostingMembers, named) {
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf("hostingMember %s is not among the Addon's spec.hostingMembers: add it there, or name another one", named))
		return nil
	}
	host, err := l.memberNamed(ctx, named)
	if err != nil {
		return err
	}
	switch {
	case host == nil:
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf("hostingMember %s is no member: have it join, or name another one", named))
	case leaving(host):
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf("hostingMember %s leaves, and takes back the agent: name another one", named))
	case !joined(host):
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf("hostingMember %s has not joined yet: wait for it, or name another one", named))
	default:
		l.host, l.hosting = host, &v1alpha1.HostingStatus{Member: named, Namespace: template.HostingNamespace(l.addon.Name, l.member.Name)}
		if l.observed.Reachable && !healthy(host) {
			l.observed.Reachable, l.observed.Hosting = false, named
		}
	}
	return nil
}

// memberNamed is the member of that name; nil: there is none that has a namespace.
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

// moves reports whether the agent is to run somewhere else than it does.
func (l *memberLook) moves() bool {
	return l.told.revision != "" && !equality.Semantic.DeepEqual(l.object.Status.Hosting, l.hosting)
}

// site is a cluster that gets a part of the add-on, by the namespace of its Works.
type site struct {
	namespace string
	part      *part
}

// sites are those of an add-on: where its agent runs comes first, the member itself last.
func (l *memberLook) sites(made *manifests) []site {
	own := site{l.key.Namespace, &made.part}
	if l.host == nil {
		return []site{own}
	}
	return []site{{l.host.Status.Namespace, &made.hosting}, own}
}

// distributeAll makes all Works of the add-on as they are to be, and reports whether they were already. While the agent moves, what is to be given up is so
// when the new site has applied what it gets: until then the old one is as it was.
func (l *memberLook) distributeAll(ctx context.Context, made *manifests, next told) (current bool, err error) {
	sites := l.sites(made)
	applied, current := true, true
	var errs []error
	for _, s := range sites {
		if l.moves() && !applied {
			break
		}
		works := slices.DeleteFunc(slices.Clone(l.has), func(r *record) bool { return r.Namespace != s.namespace })
		is, err := l.distribute(ctx, &distribution{part: s.part, key: l.key, by: l.object.UID, namespace: s.namespace, told: next, written: l.written}, works)
		if errs = append(errs, err); err == nil {
			l.delivered = append(l.delivered, s.namespace)
		}
		current = current && is
		applied = applied && is && !slices.ContainsFunc(works, func(r *record) bool { return !r.applied() })
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	for _, r := range l.has {
		switch elsewhere := !slices.ContainsFunc(sites, func(s site) bool { return s.namespace == r.Namespace }); {
		case !elsewhere || r.held.Deleting:
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

// applied reports whether the member says that it has all of the Work as it is.
func (r *record) applied() bool {
	h := &r.health
	return h.Observed == h.Generation && !h.Deleting && h.Applied == metav1.ConditionTrue
}

// said is what the Works say. Those that the agent has moved away from, and which are on their way out, say nothing of it any more.
func (l *memberLook) said() []health.Work {
	var said []health.Work
	for _, r := range l.has {
		if !r.held.Deleting || !r.hosted() {
			said = append(said, r.health)
		}
	}
	return said
}

// addonsHostedBy are the MemberAddons whose agents a member may host.
func (c *shared) addonsHostedBy(ctx context.Context, member *membershipv1alpha1.MemberCluster) (found []reconcile.Request) {
	var list v1alpha1.AddonList
	if err := c.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		c.log.Error(err, "Addons could not be listed.")
	}
	for i := range list.Items {
		if slices.Contains(list.Items[i].Spec.HostingMembers, member.Name) {
			found = append(found, c.membersOf(ctx, &list.Items[i])...)
		}
	}
	return found
}

// takeBackHosted deletes the Works on hosting members of a MemberAddon that is gone, if their deletion was requested before its finalizer was
// taken off, as a forced leave of the member does. Those in its own namespace go with that.
func (c *shared) takeBackHosted(ctx context.Context, key types.NamespacedName) error {
	works, hooks, err := c.works(key)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(append(works, hooks...), func(r *record) bool { return !r.hosted() || r.held.Deleting })
	if len(left) == 0 {
		return nil
	}
	if err := c.live.Get(ctx, key, &v1alpha1.MemberAddon{}); err == nil {
		return nil // the cache is about to show it
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read MemberAddon %s: %w", key, err)
	}
	for _, r := range left {
		is, err := c.deletable(ctx, r)
		if err != nil {
			return err
		}
		if !is {
			c.log.Info("A Work on a hosting member has no MemberAddon, and is kept", "work", r.Name, "namespace", r.Namespace, "memberaddon", key)
			continue
		}
		if err := c.deleteWork(ctx, r, ""); err != nil {
			return err
		}
	}
	return nil
}

// located finds out where the agent runs that is to be removed: what was told counts, not what is wanted meanwhile.
func (l *memberLook) located(ctx context.Context) (err error) {
	l.host, l.hosting = nil, l.object.Status.Hosting
	if l.hosting == nil && l.object.Status.AppliedRevision == "" && l.member != nil { // it was told, and the status does not say so yet
		for _, r := range l.has {
			if host, err := l.memberIn(ctx, r.Namespace); err != nil {
				return err
			} else if r.hosted() && host != nil {
				l.hosting = &v1alpha1.HostingStatus{Member: host.Name, Namespace: template.HostingNamespace(l.key.Name, l.member.Name)}
			}
		}
	}
	if l.hosting != nil {
		l.host, err = l.memberNamed(ctx, l.hosting.Member)
	}
	return err
}

// waitedFor is the member whose agent is waited for, and its name if it is another one than the add-on's. The member's own is the first, since
// the add-on's agent, on the hosting member, may be needed to clean up there.
func (l *memberLook) waitedFor(ctx context.Context) (member *membershipv1alpha1.MemberCluster, hosting string, err error) {
	for _, works := range [][]*record{l.has, l.hooks} {
		own, hosted := split(works)
		switch {
		case len(own) > 0:
			return l.member, "", nil
		case len(hosted) > 0:
			return l.worst(ctx, hosted)
		}
	}
	return l.member, "", nil
}

// worst is the hosting member of Works that can be reached the least. There are several only where the agent was on the move.
func (l *memberLook) worst(ctx context.Context, hosted []*record) (worst *membershipv1alpha1.MemberCluster, name string, err error) {
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
	case l.hosting != nil:
		return nil, l.hosting.Member, nil
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

// listLive lists the Works of the add-on past the cache: in the member's own namespace, and wherever any may be that the cache does not show.
func (l *memberLook) listLive(ctx context.Context) error {
	namespaces := map[string]bool{l.key.Namespace: true}
	for _, r := range slices.Concat(l.has, l.hooks) {
		namespaces[r.Namespace] = true
	}
	for work := range l.written {
		namespaces[work.Namespace] = true
	}
	if l.host != nil {
		namespaces[l.host.Status.Namespace] = true
	}
	l.has, l.hooks = nil, nil
	for namespace := range namespaces {
		var list workv1alpha1.WorkList
		if err := l.live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(workLabels(l.key, namespace))); err != nil {
			return fmt.Errorf("list Works of add-on %s in namespace %s: %w", l.key, namespace, err)
		}
		for i := range list.Items {
			switch r := recordOf(&list.Items[i]); {
			case r.owner() != l.key: // of another member, whose agent runs here
			case r.isHooks():
				l.hooks = append(l.hooks, r)
			default:
				l.has = append(l.has, r)
			}
		}
	}
	return nil
}
