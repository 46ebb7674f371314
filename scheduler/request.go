package scheduler

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Policy is where something is to be placed, ready to be used over and over: plugins make what they need of it once and
// leave it there. It may be used by many cycles at once.
type Policy struct {
	spec     v1alpha1.PlacementPolicy
	compiled sync.Map
}

// NewPolicy returns the policy. The error has everything that is wrong with it, by its fields; what only plugins
// understand is found out by the first Schedule.
func NewPolicy(spec *v1alpha1.PlacementPolicy) (*Policy, error) {
	if errs := spec.Validate(field.NewPath("policy")); len(errs) > 0 {
		return nil, fmt.Errorf("invalid placement policy: %w", errs.ToAggregate())
	}
	p := &Policy{}
	spec.DeepCopyInto(&p.spec)
	return p, nil
}

// Spec is what the policy was made of. It must not be changed.
func (p *Policy) Spec() *v1alpha1.PlacementPolicy { return &p.spec }

// Compiled returns what a plugin has made of a policy, which it makes when it is first asked to. The plugin is whatever
// tells it from all others: itself, if its arguments matter. An error is kept as well: the policy does not get better.
//
// It is a function since methods have no type parameters.
func Compiled[T any](p *Policy, plugin any, compile func(*v1alpha1.PlacementPolicy) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	made, known := p.compiled.Load(plugin)
	if !known {
		value, err := compile(&p.spec)
		made, _ = p.compiled.LoadOrStore(plugin, &outcome{value, err})
	}
	o := made.(*outcome)
	return o.value, o.err
}

// Request is one question: which clusters.
type Request struct {
	// Name is for messages alone.
	Name string
	// Policy must not be nil.
	Policy *Policy
	// Bound are the clusters that were chosen before. A bound cluster stays for as long as no Filter plugin rejects
	// it, unless fewer clusters are wanted: constraints and scores apply to newly chosen clusters only. With
	// [v1alpha1.RebalanceAlways] a healthy bound cluster competes with all others, and wins ties.
	Bound []string
	// Placed are the clusters that the placement runs on now. Scores ignore the resources that the placement itself uses
	// there, and if scores are equal, these clusters are preferred. Bound clusters are always included, so nil means
	// Bound. To decide as if nothing had been selected before, set Placed and leave Bound empty.
	Placed []string
	// Failover allows a bound cluster to be left because of the NoExecute taints that follow its health. False: such
	// taints only keep new placements away.
	Failover bool
	// Previous is the result of the same question about an earlier snapshot of the same [Cache], if there is one. It makes
	// no difference to the answer, but that one is found sooner if few clusters have changed since.
	Previous *Result
	// Now is what the time is for all that depends on it.
	Now time.Time
}

// keeps reports whether bound clusters stay even if others are better.
func (r *Request) keeps() bool { return r.Policy.spec.Rebalance != v1alpha1.RebalanceAlways }

// kept reports whether a bound cluster must stay. An unhealthy one always does: only a failover or a user's taint
// leaves it.
func (r *Request) kept(cluster *Cluster) bool { return !cluster.Healthy || r.keeps() }

// wanted is how many clusters are wanted; negative: all.
func (r *Request) wanted() int {
	switch spec := &r.Policy.spec; spec.Type {
	case v1alpha1.PickN:
		return int(*spec.NumberOfClusters)
	case v1alpha1.PickFixed:
		return len(spec.ClusterNames)
	default:
		return -1
	}
}
