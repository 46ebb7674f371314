package scheduler

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Policy is a compiled placement policy. It can be used for many decisions, also concurrently. Plugins compile their
// part of the policy once and store the result in the Policy.
type Policy struct {
	spec     v1alpha1.PlacementPolicy
	compiled sync.Map
}

// NewPolicy validates a spec and returns the policy. The error contains all problems by field. Schedule reports
// problems that only plugins can detect.
func NewPolicy(spec *v1alpha1.PlacementPolicy) (*Policy, error) {
	if errs := spec.Validate(field.NewPath("policy")); len(errs) > 0 {
		return nil, fmt.Errorf("invalid placement policy: %w", errs.ToAggregate())
	}
	p := &Policy{}
	spec.DeepCopyInto(&p.spec)
	return p, nil
}

// Spec returns the spec from which the policy was created. It must not be changed.
func (p *Policy) Spec() *v1alpha1.PlacementPolicy { return &p.spec }

// Compiled returns the part of a policy that a plugin has compiled. The first call compiles it. The key identifies the
// plugin; if the result depends on the arguments of the plugin, use the plugin itself as the key. Errors are stored
// too, because the policy does not change.
//
// Compiled is a function because methods have no type parameters.
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

// Request is the input of a decision: it requests clusters for one placement.
type Request struct {
	// Name is used in messages only.
	Name string
	// Policy must not be nil.
	Policy *Policy
	// Bound are the clusters that were chosen before. A bound cluster stays until a Filter plugin rejects it or fewer
	// clusters are wanted. Constraints and scores apply to newly chosen clusters only. With [v1alpha1.RebalanceAlways], a
	// healthy bound cluster competes with all others and wins ties.
	Bound []string
	// Placed are the clusters that the placement runs on now. Scores ignore the resources that the placement itself uses
	// there. If scores are equal, these clusters are preferred. Bound clusters are always included, so nil means Bound. To
	// decide as if no cluster had been chosen before, set Placed and leave Bound empty.
	Placed []string
	// Failover permits NoExecute taints that follow from the health of a cluster to remove a bound cluster. If it is
	// false, such taints only prevent new placements.
	Failover bool
	// Previous is the result of the same request for an earlier snapshot of the same [Cache]. Nil: there is none. It does
	// not change the result. It makes the decision faster if few clusters have changed since.
	Previous *Result
	// Now is the time of the decision.
	Now time.Time
}

// keeps reports whether bound clusters stay even if other clusters are better.
func (r *Request) keeps() bool { return r.Policy.spec.Rebalance != v1alpha1.RebalanceAlways }

// kept reports whether a bound cluster must stay. An unhealthy bound cluster always stays: only a failover or a user's
// taint removes it.
func (r *Request) kept(cluster *Cluster) bool { return !cluster.Healthy || r.keeps() }

// wanted returns the number of wanted clusters. Negative: all.
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
