package eviction

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Cluster is a cluster that the placement is on and stays on, except for PlacementEvictions.
type Cluster struct {
	Name string
	// Available is true while the cluster is healthy and the placed workloads are ready there.
	Available bool
}

// Observed is the input of [Plan].
type Observed struct {
	// Published are the clusters that the placement is on, in any order.
	Published []Cluster
	// Expected is the expected number of clusters: the desired number or, if all clusters are desired, the number that
	// would be chosen without evictions.
	Expected int
	// Evictions are the clusters to leave, the oldest eviction first. A cluster may occur more than once.
	Evictions []string
	// Budget must be valid. Nil: there is none.
	Budget *v1alpha1.DisruptionBudget
	// ReplacesFirst is true if the placement leaves no healthy cluster before its replacement is ready.
	ReplacesFirst bool
}

// Result is the result of one eviction.
type Result struct {
	Cluster string
	// Reason is v1alpha1.ReasonNotPlaced, ReasonEvicted or ReasonBudgetExhausted.
	Reason string
	// Message is the cause if the eviction waits. Empty: the eviction does not wait.
	Message string
}

// Waits reports whether the placement must stay on the cluster for now.
func (v Result) Waits() bool { return v.Reason == v1alpha1.ReasonBudgetExhausted }

// Plan returns a result for each eviction, in the same order. Evictions that do not wait must be executed together.
func Plan(o Observed) []Result {
	results, t := make([]Result, 0, len(o.Evictions)), tallyOf(o)
	for _, name := range o.Evictions {
		v := t.evaluate(name)
		if v.Reason == v1alpha1.ReasonEvicted {
			t.recordEviction(name)
		}
		results = append(results, v)
	}
	return results
}

// Fit returns results like Plan, for a policy that may give up more clusters than the evicted ones, such as all
// clusters if too few groups remain. fits reports whether the budget still holds if the placement leaves some clusters
// together. An eviction that removes too many clusters waits, and does not block the evictions after it.
//
// The executed evictions are those of the last call for which fits returned true; if there is none, no eviction is
// executed. Fit calls fits first with all clusters that Plan evicts. If these are too many, it calls fits for one
// eviction after the other, together with those that are executed already, the oldest first. An error of fits ends Fit.
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
				"Without the cluster, the policy would remove other clusters, too: "+t.budgetMessage()
			continue
		}
		t.recordEviction(name)
		going = append(going, name)
	}
	return results, nil
}

// tally counts the clusters that a budget still allows to evict.
type tally struct {
	Observed

	on        map[string]bool // the clusters of the placement, and whether they are available
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

// usesBudget reports whether leaving a cluster uses up a part of the budget.
func (t *tally) usesBudget(name string) bool {
	return t.on[name] && !t.left[name] && !t.ReplacesFirst && t.Budget != nil
}

func (t *tally) evaluate(name string) Result {
	_, placed := t.on[name]
	switch {
	case !placed:
		return Result{Cluster: name, Reason: v1alpha1.ReasonNotPlaced}
	case t.usesBudget(name) && t.available <= Floor(t.Budget, t.Expected):
		return Result{Cluster: name, Reason: v1alpha1.ReasonBudgetExhausted, Message: t.budgetMessage()}
	default:
		return Result{Cluster: name, Reason: v1alpha1.ReasonEvicted}
	}
}

func (t *tally) recordEviction(name string) {
	if t.usesBudget(name) {
		t.available--
	}
	t.left[name] = true
}

func (t *tally) budgetMessage() string {
	says := fmt.Sprintf("%d of %d clusters are available", t.available, t.Expected)
	if t.Budget == nil {
		return says
	}
	budget := "maxUnavailable: " + t.Budget.MaxUnavailable.String()
	if t.Budget.MinAvailable != nil {
		budget = "minAvailable: " + t.Budget.MinAvailable.String()
	}
	return fmt.Sprintf("%s, and %d must stay available (%s).", says, Floor(t.Budget, t.Expected), budget)
}

// Floor returns how many of the expected clusters must be available after an eviction. Without a budget it is 0.
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

// share returns a number, or a percentage of a whole, rounded up. An invalid value counts as 0.
func share(of *intstr.IntOrString, whole int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(of, whole, true)
	if err != nil {
		return 0
	}
	return n
}
