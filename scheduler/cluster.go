package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cluster is what the scheduler knows of a member cluster. A product makes it from its own objects. Once a Cluster was
// given to a [Cache], it and its contents must not change: a change is a new Cluster.
type Cluster struct {
	// Name is unique in a Cache, and what ties are broken by.
	Name string

	Labels map[string]string
	// Properties are facts about the cluster, by their names: quantities, versions or any other text.
	Properties map[string]string
	// Taints keep away what does not tolerate them. Tolerations with seconds count from TimeAdded.
	Taints []corev1.Taint

	// Joined is true while the cluster is in the fleet. A cluster that has not joined is not chosen, and one that was
	// chosen before stays until it is removed from the cache or Leaving. Leaving is true as soon as the cluster was asked
	// to leave. A cluster whose acceptance was withdrawn has not joined; what is placed on it stays.
	Joined, Leaving bool
	// Unreported is true while the agent of the cluster has not reported what it knows, so that Properties, APIs and
	// resources may lack what the cluster has. A cluster that was chosen before stays while it is unreported, whatever it
	// lacks, unless it is Leaving or a [StrictPlugin] rejects it.
	Unreported bool
	// Absent is true if the cluster has no object on the hub although no request to remove it was observed. It is neither
	// Joined nor Healthy, and it is Unreported. No filter rejects it, because its labels are unknown too.
	Absent bool
	// Healthy is true while the cluster is known to be well. Not to know is not to be well.
	Healthy bool

	Capacity, Allocatable, Available corev1.ResourceList

	// APIs are the kinds that the cluster serves. Nil: they are not known, which does not exclude the cluster.
	APIs map[schema.GroupVersionKind]bool

	// Policy is which objects the cluster accepts. Nil: every object, or it is not known.
	Policy *ObjectPolicy

	// Scores are from elsewhere, by their names.
	Scores map[string]float64

	// Placements is the number of placements that have chosen the cluster. Zero if the product does not count them.
	Placements int
}

// ObjectPolicy is which objects a cluster accepts.
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

// Event is a change of a fleet: a cluster that came (Old is nil), changed, or went (New is nil).
type Event struct{ Old, New *Cluster }

// Became reports whether the event has made a cluster one that a function holds for: it does now, and did not before.
// The function is never asked about nil. That is what most hints come down to.
func (e Event) Became(holds func(*Cluster) bool) bool {
	return e.New != nil && holds(e.New) && (e.Old == nil || !holds(e.Old))
}
