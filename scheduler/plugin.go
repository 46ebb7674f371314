package scheduler

import "context"

// Plugin is the interface of all plugins. A plugin takes part in a cycle at each extension point whose interface it
// implements, in the order of the [Profile]: PreFilter, Filter, PostFilter, PreScore, Score, NormalizeScore, Select,
// Reserve.
//
// Several cycles call a plugin concurrently, so a plugin must not change its own state; state of one cycle belongs to
// its [CycleState]. Plugins should do no I/O. A plugin that panics, or that exceeds the profile's timeout, ends its
// cycle with an error. Other cycles continue.
type Plugin interface {
	// Name is the name under which the plugin is registered.
	Name() string
}

// PreFilterPlugin is called once, before Filter.
type PreFilterPlugin interface {
	Plugin
	// PreFilter may write to the state what Filter needs. Skip: Filter is not called. Unschedulable: no cluster is
	// feasible.
	PreFilter(ctx context.Context, state *CycleState, request *Request) *Status
}

// FilterPlugin rejects clusters that are not feasible for a request.
type FilterPlugin interface {
	Plugin
	// Filter returns nil if the cluster is feasible, and the reason otherwise.
	Filter(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) *Status
}

// BatchFilterPlugin is a FilterPlugin that can filter all clusters in one call. The scheduler then calls Filter only
// for the reasons, if the caller needs them. Both must agree.
type BatchFilterPlugin interface {
	FilterPlugin
	// FilterAll removes from the set all clusters that Filter rejects.
	FilterAll(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// PostFilterPlugin is called if fewer clusters are feasible than are wanted.
type PostFilterPlugin interface {
	Plugin
	// PostFilter may return a suggestion in the reason of its Status, such as the clusters on which space can be freed.
	// The result contains it in its Hints. Nil: no suggestion.
	PostFilter(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// PreScorePlugin is called once, before Score.
type PreScorePlugin interface {
	Plugin
	// PreScore may write to the state what Score needs. Skip: the plugin gives no scores.
	PreScore(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// ScorePlugin gives scores to feasible clusters.
type ScorePlugin interface {
	Plugin
	// Score returns a score from 0, the worst, to [MaxScore], or any finite number if the plugin is a
	// [NormalizeScorePlugin].
	Score(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) (float64, *Status)
}

// BatchScorePlugin is a ScorePlugin that can score all clusters in one call. The scheduler then does not call Score;
// both must agree.
type BatchScorePlugin interface {
	ScorePlugin
	// ScoreAll writes the scores of the feasible clusters by slot. All scores are 0 before. Scores of other slots are
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

// ReservePlugin counts choices that the clusters do not show yet.
type ReservePlugin interface {
	Plugin
	// Reserve is called for each chosen cluster after the decision. If one call fails, the scheduler calls Unreserve for
	// all of them.
	Reserve(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) *Status
	// Unreserve undoes Reserve. It must be safe to call without a Reserve.
	Unreserve(ctx context.Context, state *CycleState, request *Request, cluster *Cluster)
}

// HintPlugin decides which events may make a request schedulable that the plugin has rejected. Without a hint, every
// event may.
type HintPlugin interface {
	Plugin
	// Hint reports whether the plugin might return another result after the event.
	Hint(request *Request, event Event) bool
}

// LocalPlugin evaluates each cluster independently of the others, so that a decision can be reused if only other
// clusters have changed ([Request].Previous).
type LocalPlugin interface {
	Plugin
	// Local reports whether the plugin's result for a cluster depends only on that cluster, the policy and the bound
	// clusters of the request: not on other clusters, as normalized scores do, and not on the time, except through
	// [CycleState.Until]. PreFilter and PreScore may still skip by the policy.
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
