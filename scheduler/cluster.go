package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cluster is the scheduler's view of a member cluster. A product creates it from its own objects. A Cluster and its
// contents must not change after it was passed to a [Cache]: pass a new Cluster for each change.
type Cluster struct {
	// Name is unique in a Cache. If everything else is equal, the order of names decides.
	Name string

	Labels map[string]string
	// Properties are facts about the cluster by name: quantities, versions or any other text.
	Properties map[string]string
	// Taints exclude placements that do not tolerate them. Tolerations with seconds count from TimeAdded.
	Taints []corev1.Taint

	// Joined is true while the cluster is in the fleet. A cluster that has not joined is not chosen. If it was chosen
	// before, it stays until it is removed from the cache or is Leaving. Leaving is true as soon as the removal of the
	// cluster from the fleet was requested. A cluster whose acceptance was withdrawn is not Joined; workloads that are
	// placed on it stay.
	Joined, Leaving bool
	// Unreported is true while the report of the cluster's agent is incomplete, so that Properties, APIs and resources may
	// lack entries. A cluster that was chosen before stays while it is Unreported, even if a filter rejects it, unless it
	// is Leaving or a [StrictPlugin] rejects it.
	Unreported bool
	// Absent is true if the cluster has no object on the hub although no request to remove it was observed. It is neither
	// Joined nor Healthy, and it is Unreported. No filter rejects it, because its labels are unknown too.
	Absent bool
	// Healthy is true while the cluster is known to be healthy. It is false if the health is unknown.
	Healthy bool

	Capacity, Allocatable, Available corev1.ResourceList

	// APIs are the kinds that the cluster serves. Nil: they are not known, which does not exclude the cluster.
	APIs map[schema.GroupVersionKind]bool

	// Policy defines which objects the cluster accepts. Nil: every object, or the policy is unknown.
	Policy *ObjectPolicy

	// Scores are the external scores of the cluster, by name.
	Scores map[string]float64

	// Placements is the number of placements that have chosen the cluster. Zero if the product does not count them.
	Placements int
}

// ObjectPolicy defines which objects a cluster accepts.
type ObjectPolicy struct {
	// Kinds are the accepted kinds, and "*" is every kind or every group. Empty: the cluster accepts no object.
	Kinds []schema.GroupKind
	// Truncated means that the cluster may accept more kinds.
	Truncated bool
}

// Accepts reports whether a cluster with this policy may accept some objects of a kind.
func (p *ObjectPolicy) Accepts(kind schema.GroupKind) bool {
	return p == nil || p.Truncated || slices.ContainsFunc(p.Kinds, func(k schema.GroupKind) bool {
		return (k.Group == "*" || k.Group == kind.Group) && (k.Kind == "*" || k.Kind == kind.Kind)
	})
}

// Event is a change of a fleet. If Old is nil, the cluster was added; if New is nil, it was removed; otherwise it
// changed.
type Event struct{ Old, New *Cluster }

// Became reports whether a function returns true for the new state of the cluster and did not for the old state. The
// function is never called with nil. Most hints use Became.
func (e Event) Became(holds func(*Cluster) bool) bool {
	return e.New != nil && holds(e.New) && (e.Old == nil || !holds(e.Old))
}
