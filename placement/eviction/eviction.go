package eviction

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Cluster is one that a placement is on and stays on, but for evictions by hand.
type Cluster struct {
	Name string
	// Available is true while it is healthy and what was placed there does its work.
	Available bool
}

// Observed is what a plan is made of.
type Observed struct {
	// Published are the clusters that the placement is on, in any order.
	Published []Cluster
	// Expected is how many there should be: as many as are wanted or, if all are, as many as would be chosen if none was evicted.
	Expected int
	// Evictions are the clusters to leave, the oldest eviction first. One may be there more than once.
	Evictions []string
	// Budget is valid. Nil: there is none.
	Budget *v1alpha1.DisruptionBudget
	// ReplacesFirst is true if nobody healthy goes before another is ready in its place.
	ReplacesFirst bool
}

// Verdict is what becomes of an eviction now.
type Verdict struct {
	Cluster string
	// Reason is v1alpha1.ReasonNotPlaced, ReasonEvicted or ReasonBudgetExhausted.
	Reason string
	// Message says more about an eviction that waits; empty: it does not.
	Message string
}

// Waits reports whether the placement has to stay on the cluster for now.
func (v Verdict) Waits() bool { return v.Reason == v1alpha1.ReasonBudgetExhausted }

// Plan returns a verdict on each eviction, in their order. Those that do not wait are to be executed together.
func Plan(o Observed) []Verdict {
	on, available := make(map[string]bool, len(o.Published)), 0
	for _, c := range o.Published {
		on[c.Name] = c.Available
		if c.Available {
			available++
		}
	}
	floor := Floor(o.Budget, o.Expected)
	left := map[string]bool{}
	verdicts := make([]Verdict, 0, len(o.Evictions))
	for _, name := range o.Evictions {
		v := Verdict{Cluster: name, Reason: v1alpha1.ReasonEvicted}
		isAvailable, placed := on[name]
		switch {
		case !placed:
			v.Reason = v1alpha1.ReasonNotPlaced
		case left[name] || !isAvailable || o.ReplacesFirst || o.Budget == nil:
			left[name] = true
		case available > floor:
			available--
			left[name] = true
		default:
			v.Reason, v.Message = v1alpha1.ReasonBudgetExhausted, Exhausted(o.Budget, available, o.Expected)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// Floor is how many of the clusters that there should be must be available after an eviction. Without a budget it is 0.
func Floor(budget *v1alpha1.DisruptionBudget, expected int) int {
	switch {
	case budget == nil:
		return 0
	case budget.MinAvailable != nil:
		return min(expected, share(budget.MinAvailable, expected))
	default:
		return max(0, expected-share(budget.MaxUnavailable, expected))
	}
}

// Exhausted says in one sentence why a budget lets no available cluster go.
func Exhausted(budget *v1alpha1.DisruptionBudget, available, expected int) string {
	says := "maxUnavailable: " + budget.MaxUnavailable.String()
	if budget.MinAvailable != nil {
		says = "minAvailable: " + budget.MinAvailable.String()
	}
	return fmt.Sprintf("%d of %d clusters are available, and %d must remain so (%s)", available, expected, Floor(budget, expected), says)
}

// share is a number, or a percentage of a whole rounded up. What is neither is nothing at all: it is not valid.
func share(of *intstr.IntOrString, whole int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(of, whole, true)
	if err != nil {
		return 0
	}
	return n
}
