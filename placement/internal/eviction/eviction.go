package eviction

import (
	"fmt"
	"slices"

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
	// Expected is how many there should be: as many as are wanted or, if all are, as many as would be chosen if none was
	// evicted.
	Expected int
	// Evictions are the clusters to leave, the oldest eviction first. One may be there more than once.
	Evictions []string
	// Budget is valid. Nil: there is none.
	Budget *v1alpha1.DisruptionBudget
	// ReplacesFirst is true if no healthy cluster is left before its replacement is ready.
	ReplacesFirst bool
}

// Result is what becomes of an eviction now.
type Result struct {
	Cluster string
	// Reason is v1alpha1.ReasonNotPlaced, ReasonEvicted or ReasonBudgetExhausted.
	Reason string
	// Message says more about an eviction that waits; empty: it does not.
	Message string
}

// Waits reports whether the placement has to stay on the cluster for now.
func (v Result) Waits() bool { return v.Reason == v1alpha1.ReasonBudgetExhausted }

// Plan returns a result for each eviction, in their order. Those that do not wait are to be executed together.
func Plan(o Observed) []Result {
	results, t := make([]Result, 0, len(o.Evictions)), tallyOf(o)
	for _, name := range o.Evictions {
		v := t.evaluate(name)
		if v.Reason == v1alpha1.ReasonEvicted {
			t.leave(name)
		}
		results = append(results, v)
	}
	return results
}

// Fit is Plan for a policy that may give up more than the clusters that are left, such as everything when there are too
// few groups without them: fits says whether the budget still holds when the placement leaves some clusters together.
// An eviction that takes too much along waits, and holds up none of those after it.
//
// What fits agreed to last is what goes; if it agreed to nothing, nothing goes. It is asked about all that Plan lets go
// and, if that is too much, about one eviction after the other together with those that go already, the oldest first.
// Its error ends Fit.
func Fit(o Observed, fits func(clusters []string) (bool, error)) ([]Result, error) {
	results := Plan(o)
	var together []string
	for _, v := range results {
		if v.Reason == v1alpha1.ReasonEvicted && !slices.Contains(together, v.Cluster) {
			together = append(together, v.Cluster)
		}
	}
	if len(together) > 1 {
		if fit, err := fits(together); fit || err != nil {
			return results, err
		}
	}
	t := tallyOf(o)
	var going []string
	for i, name := range o.Evictions {
		results[i] = t.evaluate(name)
		if results[i].Reason != v1alpha1.ReasonEvicted || t.left[name] {
			continue
		}
		fit, err := fits(append(slices.Clip(going), name))
		if err != nil {
			return nil, err
		}
		if !fit {
			results[i].Reason, results[i].Message = v1alpha1.ReasonBudgetExhausted,
				"without it the policy would give up more: "+t.exhausted()
			continue
		}
		t.leave(name)
		going = append(going, name)
	}
	return results, nil
}

// tally is what a budget still has to give.
type tally struct {
	Observed

	on        map[string]bool // whether it is available
	left      map[string]bool
	available int
}

func tallyOf(o Observed) *tally {
	t := &tally{Observed: o, on: make(map[string]bool, len(o.Published)), left: map[string]bool{}}
	for _, c := range o.Published {
		t.on[c.Name] = c.Available
		if c.Available {
			t.available++
		}
	}
	return t
}

// costs reports whether it takes something of the budget to leave a cluster.
func (t *tally) costs(name string) bool {
	return t.on[name] && !t.left[name] && !t.ReplacesFirst && t.Budget != nil
}

func (t *tally) evaluate(name string) Result {
	_, placed := t.on[name]
	switch {
	case !placed:
		return Result{Cluster: name, Reason: v1alpha1.ReasonNotPlaced}
	case t.costs(name) && t.available <= Floor(t.Budget, t.Expected):
		return Result{Cluster: name, Reason: v1alpha1.ReasonBudgetExhausted, Message: t.exhausted()}
	default:
		return Result{Cluster: name, Reason: v1alpha1.ReasonEvicted}
	}
}

func (t *tally) leave(name string) {
	if t.costs(name) {
		t.available--
	}
	t.left[name] = true
}

func (t *tally) exhausted() string {
	says := fmt.Sprintf("%d of %d clusters are available", t.available, t.Expected)
	if t.Budget == nil {
		return says
	}
	budget := "maxUnavailable: " + t.Budget.MaxUnavailable.String()
	if t.Budget.MinAvailable != nil {
		budget = "minAvailable: " + t.Budget.MinAvailable.String()
	}
	return fmt.Sprintf("%s, and %d must remain so (%s)", says, Floor(t.Budget, t.Expected), budget)
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

// share is a number, or a percentage of a whole rounded up. What is neither is nothing at all: it is not valid.
func share(of *intstr.IntOrString, whole int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(of, whole, true)
	if err != nil {
		return 0
	}
	return n
}
