package tenancy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// Set is the observed state of a ClusterSet.
type Set struct {
	// Name is unique among sets. Of several sets with the same name, the last one is used.
	Name string
	// Selector selects the clusters by their labels. Nil means that the selector is invalid: the set grants no new
	// cluster, and no cluster is withdrawn because of the set.
	Selector labels.Selector
}

// Binding is the observed state of a ClusterSetBinding.
type Binding struct {
	// Namespace is the namespace that receives the permission.
	Namespace string
	// Name is unique in the namespace. Of several bindings with the same name, the last one is used.
	Name string
	// Set is the name of the set. A binding of a set that does not exist grants no new cluster.
	Set string
	// Deleted means that the deletion of the binding was requested. The binding grants nothing.
	Deleted bool
	// Limits restrict what the namespace may distribute by this binding. Nil: no restriction.
	Limits *Limits
}

// Limits restrict what a namespace may distribute to clusters. They do not change.
type Limits struct {
	// Kinds are the kinds of the objects. Empty: every kind.
	Kinds []v1alpha1.ObjectKind
	// ServiceAccount is the ServiceAccount on the member that must apply the objects. Nil: any ServiceAccount, and the
	// agent itself.
	ServiceAccount *v1alpha1.ServiceAccount
}

// AllowsKind reports whether objects of a kind may be distributed. The nil Limits allow nothing.
func (l *Limits) AllowsKind(group, kind string) bool {
	return l != nil && (len(l.Kinds) == 0 ||
		slices.ContainsFunc(l.Kinds, func(k v1alpha1.ObjectKind) bool { return k.Matches(group, kind) }))
}

// unlimited is the value of Limits for a binding without restrictions.
var unlimited = &Limits{}

// Cluster is the member cluster of a decision.
type Cluster struct {
	// Labels are the labels of the MemberCluster.
	Labels labels.Set
	// Absent means that the MemberCluster does not exist on the hub, so that its labels are not known.
	Absent bool
	// Binding is the name of the binding by which the cluster was chosen. Empty: the cluster is not chosen, or was chosen
	// before tenancy was enabled.
	Binding string
}

// Access is the result of a decision.
type Access string

const (
	// Allowed means that the namespace may place on the cluster.
	Allowed Access = "Allowed"
	// Denied means that an observable request ended the permission. A chosen cluster is withdrawn.
	Denied Access = "Denied"
	// Unknown means that neither a permission nor a request that ended one was observed. The cluster is not newly chosen.
	// If the cluster is already chosen, it stays chosen.
	Unknown Access = "Unknown"
)

// Decision is the decision about one cluster.
type Decision struct {
	Access Access
	// Binding and Set name the objects that grant the permission, or that ended it. Both are empty if Access is Unknown.
	Binding, Set string
	// Message explains a denial to users. It is empty if Access is not Denied.
	Message string
	// Limits are those of the binding that grants the permission or, if Access is Unknown, of the binding by which the
	// cluster was chosen. Nil: nothing may be distributed to the cluster, because Access is Denied or the binding was not
	// observed.
	Limits *Limits
}

// Rules decide for one namespace. They do not change and are safe for concurrent use. The nil Rules allow nothing and
// deny nothing.
type Rules struct {
	// clusterScope reports whether the rules are those of cluster-scoped objects.
	clusterScope bool
	namespace    string
	bindings     []rule // sorted by name
	selection    []v1alpha1.SelectionGrantSpec
}

// clusterScope contains the rules of all cluster-scoped objects.
var clusterScope = &Rules{clusterScope: true}

// ClusterScope returns the rules for ClusterPlacements and ClusterWorkSets, always the same pointer. They allow every
// cluster without limits, because RBAC determines which users can create cluster-scoped objects. A caller must know
// that its object is cluster-scoped: NewRules with an empty namespace allows nothing.
func ClusterScope() *Rules { return clusterScope }

type rule struct {
	Binding
	selector labels.Selector // nil: invalid, or the set does not exist
}

// NewRules returns the rules for a namespace. The order of sets and of bindings with different names does not matter.
// Bindings of other namespaces are ignored. The empty namespace has no bindings: a cluster-scoped caller must not
// receive a permission by accident.
func NewRules(namespace string, sets []Set, bindings []Binding) *Rules {
	r := &Rules{namespace: namespace}
	if namespace == "" {
		return r
	}
	selectors := make(map[string]labels.Selector, len(sets))
	for _, s := range sets {
		selectors[s.Name] = s.Selector
	}
	byName := map[string]rule{}
	for _, b := range bindings {
		if b.Namespace == namespace {
			if b.Limits == nil {
				b.Limits = unlimited
			}
			byName[b.Name] = rule{b, selectors[b.Set]}
		}
	}
	for _, b := range byName {
		r.bindings = append(r.bindings, b)
	}
	slices.SortFunc(r.bindings, func(a, b rule) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// Decide decides about one cluster. If several bindings allow the cluster, the decision names the binding by which the
// cluster was chosen, and otherwise the first binding by name. The decision for a cluster-scoped object names no
// binding.
func (r *Rules) Decide(cluster Cluster) Decision {
	if r == nil {
		return Decision{Access: Unknown}
	}
	if r.clusterScope {
		return Decision{Access: Allowed, Limits: unlimited}
	}
	var granting, recorded *rule
	for i := range r.bindings {
		b := &r.bindings[i]
		if cluster.Binding != "" && b.Name == cluster.Binding {
			recorded = b
		}
		if b.grants(cluster) && (granting == nil || b == recorded) {
			granting = b
		}
	}
	switch {
	case granting != nil:
		return Decision{Access: Allowed, Binding: granting.Name, Set: granting.Set, Limits: granting.Limits}
	case recorded == nil:
		return Decision{Access: Unknown}
	case recorded.Deleted:
		return Decision{Access: Denied, Binding: recorded.Name, Set: recorded.Set, Message: fmt.Sprintf(
			"ClusterSetBinding %s/%s was deleted, and no other binding of the namespace grants the cluster", r.namespace,
			recorded.Name)}
	case recorded.selector != nil && !cluster.Absent: // The selector is valid and does not match.
		return Decision{Access: Denied, Binding: recorded.Name, Set: recorded.Set, Message: fmt.Sprintf(
			"ClusterSet %s does not select the cluster any more, and no other binding of namespace %s grants it", recorded.Set,
			r.namespace)}
	default:
		return Decision{Access: Unknown, Limits: recorded.Limits}
	}
}

// MayPlace returns nil if the namespace may newly place on a cluster, and otherwise an error with the reason, written
// for users. Every path to a member calls MayPlace or Decide: the controllers of Placements, WorkSets and Addons, and
// the live clusters of package membership/fleet.
func (r *Rules) MayPlace(cluster Cluster) error {
	switch d := r.Decide(cluster); {
	case d.Access == Allowed:
		return nil
	case d.Access == Denied:
		return errors.New(d.Message)
	case r == nil:
		return errors.New("no ClusterSetBinding was observed that grants the cluster")
	case !r.Bound():
		return errors.New(NotBound(r.namespace))
	default:
		return fmt.Errorf("no ClusterSetBinding of namespace %s grants the cluster", r.namespace)
	}
}

func (b *rule) grants(cluster Cluster) bool {
	if b.Deleted || b.selector == nil {
		return false
	}
	if cluster.Absent {
		return b.selector.Empty() // The selector matches the cluster with any labels.
	}
	return b.selector.Matches(cluster.Labels)
}

// WithSelection returns a copy of the rules with other SelectionGrants. A WorkSet of the namespace may select an object
// outside of the namespace if one of the grants allows it. The grants must not be modified afterwards.
func (r *Rules) WithSelection(grants []v1alpha1.SelectionGrantSpec) *Rules {
	if r == nil {
		return nil
	}
	next := *r
	next.selection = grants
	return &next
}

// OfSet returns the rules with the bindings of one set only.
func (r *Rules) OfSet(set string) *Rules {
	if r == nil || r.clusterScope {
		return r
	}
	next := *r
	next.bindings = slices.DeleteFunc(slices.Clone(r.bindings), func(b rule) bool { return b.Set != set })
	return &next
}

// Bound reports whether the namespace has a binding that is not being deleted, or needs no binding.
func (r *Rules) Bound() bool {
	return r != nil && (r.clusterScope || slices.ContainsFunc(r.bindings, func(b rule) bool { return !b.Deleted }))
}

// NotBound returns the message for a namespace without a binding. It contains the command that creates one.
func NotBound(namespace string) string {
	return fmt.Sprintf("Namespace %s has no ClusterSetBinding, so its Placements cannot choose new clusters. A user who "+
		"has the verb "+
		"bind on ClusterSet global allows all clusters with: %s", namespace, bindCommand(namespace, "global"))
}

// bindCommand returns the shell command that binds a ClusterSet to a namespace.
func bindCommand(namespace, set string) string {
	return fmt.Sprintf(`echo '{"apiVersion":"tenancy.muster.dev/v1alpha1","kind":"ClusterSetBinding",`+
		`"metadata":{"namespace":%q,"name":%q},"spec":{"clusterSetName":%q}}' | kubectl apply -f -`, namespace, set, set)
}
