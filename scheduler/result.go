package scheduler

import (
	"context"
	"slices"
	"time"
)

// Result is a decision. It keeps its snapshot in memory, for [Result.Diagnose].
type Result struct {
	// Chosen are the clusters: the best first if a number of them was wanted, and by name if all were.
	Chosen []Choice
	// Wanted is how many were wanted; negative: all that can.
	Wanted int
	// Feasible is how many of the Total clusters can.
	Feasible, Total int
	// RejectedBy are the plugins that refused a cluster, or the request, in the order of the profile.
	RejectedBy []string
	// Hints are what PostFilter plugins say would help.
	Hints []string
	// Until is when to decide anew although nothing has changed; zero: never.
	Until time.Time

	scheduler *Scheduler
	profile   *profile
	snapshot  *Snapshot
	request   *Request
	tally     tally
}

// Choice is a cluster that was chosen.
type Choice struct {
	Cluster *Cluster
	// Score is the weighted sum of all scores; 0 where all clusters were wanted and none had to be preferred.
	Score float64
}

// Missing is how many more clusters were wanted than could be chosen.
func (r *Result) Missing() int { return max(0, r.Wanted-len(r.Chosen)) }

// Unreserve tells the plugins that the choice will not come to be.
func (r *Result) Unreserve(ctx context.Context) {
	if r.profile == nil {
		return
	}
	state := &CycleState{snapshot: r.snapshot}
	for _, choice := range slices.Backward(r.Chosen) {
		unreserve(ctx, r.profile.plugins, state, r.request, choice.Cluster)
	}
}

// unreserve asks plugins, the last first.
func unreserve(ctx context.Context, plugins []plugin, state *CycleState, request *Request, cluster *Cluster) {
	for i := range slices.Backward(plugins) {
		if p := &plugins[i]; p.reserve != nil {
			p.reserve.Unreserve(ctx, state, request, cluster)
		}
	}
}
