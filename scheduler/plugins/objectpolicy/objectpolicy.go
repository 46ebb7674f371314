package objectpolicy

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "ObjectPolicy"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.BatchFilterPlugin = plugin{}
	_ scheduler.HintPlugin        = plugin{}
)

// rule is a requirement that the ObjectPolicy of a cluster must satisfy.
type rule struct {
	key      string
	accepts  func(*scheduler.Cluster) bool
	rejected *scheduler.Status
}

// anything is the rule for all policies: the cluster must accept at least one kind.
var anything = rule{
	key: "accepts",
	accepts: func(c *scheduler.Cluster) bool {
		return c.Policy == nil || c.Policy.Truncated || len(c.Policy.Kinds) > 0
	},
	rejected: scheduler.Reject("accepts no objects: its MemberPolicies have no rule for this hub"),
}

func compiled(request *scheduler.Request) []rule {
	rules, _ := scheduler.Compiled(request.Policy, plugin{}, func(spec *v1alpha1.PlacementPolicy) ([]rule, error) {
		rules := []rule{anything}
		for _, required := range spec.RequiredAPIs {
			kind := schema.GroupKind{Group: required.Group, Kind: required.Kind}
			rules = append(rules, rule{
				key:      "accepts:" + kind.String(),
				accepts:  func(c *scheduler.Cluster) bool { return c.Policy.Accepts(kind) },
				rejected: scheduler.Reject("does not accept " + kind.String() + ": none of its MemberPolicies has a rule for it"),
			})
		}
		return rules, nil
	})
	return rules
}

func (plugin) Name() string { return Name }

// Filter rejects clusters that violate a rule. Bound clusters stay: a MemberPolicy does not delete objects that are
// placed there.
func (plugin) Filter(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	if slot, there := state.Snapshot().Slot(cluster.Name); there && state.Bound().Has(slot) {
		return nil
	}
	for _, r := range compiled(request) {
		if !r.accepts(cluster) {
			return r.rejected
		}
	}
	return nil
}

func (plugin) FilterAll(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	bound := state.Bound().Clone()
	bound.Retain(feasible)
	for _, r := range compiled(request) {
		feasible.Retain(state.Snapshot().Where(r.key, r.accepts))
	}
	feasible.Insert(bound)
	return nil
}

// Hint reports whether the cluster satisfies all rules and did not before.
func (plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	return event.Became(func(c *scheduler.Cluster) bool {
		for _, r := range compiled(request) {
			if !r.accepts(c) {
				return false
			}
		}
		return true
	})
}

// Local returns true.
func (plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }
