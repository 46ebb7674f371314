package scheduler

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Policy is a compiled placement policy that can be used for many decisions: plugins compile what they need once and
// keep it in the Policy. It may be used concurrently.
type Policy struct {
	spec     v1alpha1.PlacementPolicy
	compiled sync.Map
}

// NewPolicy returns the policy. The error contains all problems by field. Problems that only plugins can detect are
// reported by the first Schedule.
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

// Compiled returns what a plugin has compiled from a policy. The first call compiles it. The key identifies the plugin;
// if the arguments of the plugin matter, use the plugin itself. An error is kept too, because the policy does not
// change.
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

// Request asks for the clusters of one placement.
type Request struct {
	// Name is used in messages only.
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
	// Previous is the result of the same request for an earlier snapshot of the same [Cache]. Nil: there is none. It does
	// not change the result, but makes the decision faster if few clusters have changed since.
	Previous *Result
	// Now is the time of the decision.
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
