package scheduler

import "context"

// Plugin is the interface of all plugins. A plugin is called at each extension point whose interface it implements, in
// the order of the [Profile]: PreFilter, Filter, PostFilter, PreScore, Score, NormalizeScore, Select, Reserve.
//
// Several cycles call a plugin concurrently, so a plugin must not change its own state. State of one cycle belongs to
// its [CycleState]. Plugins should do no I/O. A plugin that panics, or that exceeds the profile's timeout, ends its
// cycle with an error. Other cycles continue.
type Plugin interface {
	// Name returns the name under which the plugin is registered.
	Name() string
}

// PreFilterPlugin is called once, before Filter.
type PreFilterPlugin interface {
	Plugin
	// PreFilter may write values for Filter to the state. If it returns Skip, Filter is not called. If it returns
	// Unschedulable, no new cluster is feasible; bound clusters stay unless another plugin rejects them.
	PreFilter(ctx context.Context, state *CycleState, request *Request) *Status
}

// FilterPlugin rejects clusters that are not feasible for a request.
type FilterPlugin interface {
	Plugin
	// Filter returns nil if the cluster is feasible, and a Status with the reason otherwise.
	Filter(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) *Status
}

// BatchFilterPlugin is a FilterPlugin that can filter all clusters in one call. The scheduler then calls Filter only if
// the caller needs reasons or if it evaluates single clusters that have changed. Both must agree.
type BatchFilterPlugin interface {
	FilterPlugin
	// FilterAll removes from the set all clusters that Filter rejects.
	FilterAll(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// PostFilterPlugin is called if fewer clusters are feasible than are wanted.
type PostFilterPlugin interface {
	Plugin
	// PostFilter may return a suggestion in the reason of its Status, such as the clusters on which space can be freed.
	// The Hints of the result contain it. Nil: no suggestion.
	PostFilter(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// PreScorePlugin is called before Score: once for all clusters, or once for each cluster that has changed if the
// scheduler updates an earlier result. The calls for one result have the same state.
type PreScorePlugin interface {
	Plugin
	// PreScore may write values for Score to the state. If it returns Skip, the plugin gives no scores.
	PreScore(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// ScorePlugin gives scores to feasible clusters.
type ScorePlugin interface {
	Plugin
	// Score returns a score from 0, the worst, to [MaxScore], or any finite number if the plugin is a
	// [NormalizeScorePlugin].
	Score(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) (float64, *Status)
}

// BatchScorePlugin is a ScorePlugin that can score all clusters in one call. The scheduler then calls Score only for
// single clusters that have changed. Both must agree.
type BatchScorePlugin interface {
	ScorePlugin
	// ScoreAll writes the scores of the feasible clusters by slot. All scores are 0 initially. Scores of other slots are
	// ignored.
	ScoreAll(ctx context.Context, state *CycleState, request *Request, feasible Set, scores []float64) *Status
}

// NormalizeScorePlugin converts its scores to the range from 0 to [MaxScore] after all clusters have a score.
type NormalizeScorePlugin interface {
	ScorePlugin
	// NormalizeScore changes the scores of the feasible clusters by slot. Scores of other slots are ignored.
	NormalizeScore(ctx context.Context, state *CycleState, request *Request, feasible Set, scores []float64) *Status
}

// SelectPlugin restricts which of the ranked clusters are chosen together. After all SelectPlugins, the scheduler
// chooses the best of the remaining candidates.
type SelectPlugin interface {
	Plugin
	// Selects reports whether the plugin applies to the request.
	Selects(request *Request) bool
	// Select drops candidates that must not be chosen.
	Select(ctx context.Context, state *CycleState, request *Request, candidates *Candidates) *Status
}

// ReservePlugin keeps track of decisions that the [Cluster] values do not reflect yet.
type ReservePlugin interface {
	Plugin
	// Reserve is called for each chosen cluster after the decision. If one call fails, the scheduler calls Unreserve for
	// all of them.
	Reserve(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) *Status
	// Unreserve undoes Reserve. It must be safe to call without a Reserve.
	Unreserve(ctx context.Context, state *CycleState, request *Request, cluster *Cluster)
}

// HintPlugin decides which events may make a request schedulable that the plugin has rejected. For a plugin without
// hints, every event may.
type HintPlugin interface {
	Plugin
	// Hint reports whether the plugin might return another result after the event.
	Hint(request *Request, event Event) bool
}

// LocalPlugin evaluates each cluster independently of the others. A decision can then be reused if only other clusters
// have changed ([Request].Previous).
type LocalPlugin interface {
	Plugin
	// Local reports whether the plugin's result for a cluster depends only on that cluster, the policy and the bound
	// clusters of the request. The result must not depend on other clusters, as normalized scores do. It must not depend
	// on the time, except through [CycleState.Until]. PreFilter and PreScore may still return Skip because of the policy.
	Local(state *CycleState, request *Request) bool
}

// StrictPlugin is a FilterPlugin that uses only what users define for a cluster, and not what the agent of the cluster
// reports. It may reject a cluster that was chosen before and is [Cluster].Unreported, unless the cluster is
// [Cluster].Absent.
type StrictPlugin interface {
	FilterPlugin
	// Strict reports whether the plugin is strict for the request. It is called for each decision, also concurrently.
	Strict(request *Request) bool
}

// MaxScore is the best score; the worst is 0.
const MaxScore = 100.0
