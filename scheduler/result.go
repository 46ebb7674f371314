package scheduler

import (
	"context"
	"slices"
	"time"
)

// Result is a decision. It keeps its snapshot in memory, for [Result.Diagnose].
type Result struct {
	// Chosen are the chosen clusters: the best first if a number of clusters was wanted, and by name if all were.
	Chosen []Choice
	// Wanted is the number of wanted clusters. Negative: all feasible clusters.
	Wanted int
	// Feasible is the number of feasible clusters, and Total the number of all clusters.
	Feasible, Total int
	// RejectedBy are the plugins that rejected a cluster, or the request, in the order of the profile.
	RejectedBy []string
	// Hints are the suggestions of PostFilter plugins.
	Hints []string
	// Until is when the decision must be repeated although nothing has changed. Zero: never.
	Until time.Time

	scheduler *Scheduler
	profile   *profile
	snapshot  *Snapshot
	request   *Request
	tally     tally
}

// Choice is a chosen cluster.
type Choice struct {
	Cluster *Cluster
	// Score is the weighted sum of all scores. It is 0 if all clusters were wanted and no preference was necessary.
	Score float64
}

// Missing returns how many of the wanted clusters could not be chosen.
func (r *Result) Missing() int { return max(0, r.Wanted-len(r.Chosen)) }

// Unreserve informs the plugins that the decision is not used.
func (r *Result) Unreserve(ctx context.Context) {
	if r.profile == nil {
		return
	}
	state := &CycleState{snapshot: r.snapshot}
	for _, choice := range slices.Backward(r.Chosen) {
		unreserve(ctx, r.profile.plugins, state, r.request, choice.Cluster)
	}
}

// unreserve calls Unreserve of the plugins in reverse order.
func unreserve(ctx context.Context, plugins []plugin, state *CycleState, request *Request, cluster *Cluster) {
	for i := range slices.Backward(plugins) {
		if p := &plugins[i]; p.reserve != nil {
			p.reserve.Unreserve(ctx, state, request, cluster)
		}
	}
}
