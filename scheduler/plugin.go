package scheduler

import "context"

// Plugin is what all plugins are. A plugin takes part in a cycle at each of the extension points whose interface it
// has, in the order of the [Profile]: PreFilter, Filter, PostFilter, PreScore, Score, NormalizeScore, Select, Reserve.
//
// Plugins are asked by many cycles at once, so what they keep must not change; what belongs to one cycle goes into its
// [CycleState]. They should do no I/O. A plugin that panics ends its cycle with an error, and so does one that
// takes longer than the profile's timeout; other cycles go on.
type Plugin interface {
	// Name is the name that the plugin is registered by.
	Name() string
}

// PreFilterPlugin is asked once, before Filter.
type PreFilterPlugin interface {
	Plugin
	// PreFilter may put into the state what Filter needs. Skip: Filter is not asked. Unschedulable: no cluster can do.
	PreFilter(ctx context.Context, state *CycleState, request *Request) *Status
}

// FilterPlugin says which clusters cannot take a request.
type FilterPlugin interface {
	Plugin
	// Filter returns nil, or why the cluster cannot.
	Filter(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) *Status
}

// BatchFilterPlugin is a FilterPlugin that can filter all clusters in one call. The scheduler then calls Filter only
// for the reasons, if the caller needs them. Both must agree.
type BatchFilterPlugin interface {
	FilterPlugin
	// FilterAll takes out of the set what Filter refuses.
	FilterAll(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// PostFilterPlugin is asked when fewer clusters are feasible than are wanted.
type PostFilterPlugin interface {
	Plugin
	// PostFilter may say what would help, such as which clusters could be made room in, in its Status's reason; the result
	// then has it in its Hints. Nil: nothing.
	PostFilter(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// PreScorePlugin is asked once, before Score.
type PreScorePlugin interface {
	Plugin
	// PreScore may put into the state what Score needs. Skip: the plugin gives no scores.
	PreScore(ctx context.Context, state *CycleState, request *Request, feasible Set) *Status
}

// ScorePlugin ranks the clusters that can.
type ScorePlugin interface {
	Plugin
	// Score returns from 0, the worst, to [MaxScore]; or anything finite, if the plugin is a [NormalizeScorePlugin].
	Score(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) (float64, *Status)
}

// BatchScorePlugin is a ScorePlugin that can score all clusters at a time. Score is then not asked; both must agree.
type BatchScorePlugin interface {
	ScorePlugin
	// ScoreAll writes the scores of the feasible clusters by their slots. These are 0 before; those of other slots mean
	// nothing.
	ScoreAll(ctx context.Context, state *CycleState, request *Request, feasible Set, scores []float64) *Status
}

// NormalizeScorePlugin brings its scores, once all are known, to between 0 and [MaxScore].
type NormalizeScorePlugin interface {
	ScorePlugin
	// NormalizeScore changes the scores of the feasible clusters, by their slots. Those of other slots mean nothing.
	NormalizeScore(ctx context.Context, state *CycleState, request *Request, feasible Set, scores []float64) *Status
}

// SelectPlugin has a say in which of the ranked clusters are chosen together. After all of these the best are chosen of
// those that are left.
type SelectPlugin interface {
	Plugin
	// Selects reports whether the plugin has anything to say about the request.
	Selects(request *Request) bool
	// Select drops clusters that are not to be chosen.
	Select(ctx context.Context, state *CycleState, request *Request, candidates *Candidates) *Status
}

// ReservePlugin keeps account of what was chosen and is not yet to be seen in the clusters.
type ReservePlugin interface {
	Plugin
	// Reserve is asked for each cluster that is chosen, once the choice is made. If one is refused, all are given back.
	Reserve(ctx context.Context, state *CycleState, request *Request, cluster *Cluster) *Status
	// Unreserve takes a Reserve back, and must do no harm where there was none.
	Unreserve(ctx context.Context, state *CycleState, request *Request, cluster *Cluster)
}

// HintPlugin tells which events are worth another try of a request that it has refused clusters to. Without a hint all
// are.
type HintPlugin interface {
	Plugin
	// Hint reports whether the plugin might answer otherwise after the event.
	Hint(request *Request, event Event) bool
}

// LocalPlugin can judge each cluster by itself, so that a decision need not be made anew because of clusters that have
// no part in it ([Request].Previous).
type LocalPlugin interface {
	Plugin
	// Local reports whether what the plugin says of a cluster depends on nothing but that cluster, the policy and what the
	// request is bound to: not on other clusters, as normalized scores do, nor on the time, except through
	// [CycleState.Until]. PreFilter and PreScore may still skip, by the policy.
	Local(state *CycleState, request *Request) bool
}

// StrictPlugin is a FilterPlugin that decides by what users say of a cluster, and not by what the agent of the cluster
// reports. It may reject a cluster that was chosen before and is [Cluster].Unreported, unless the cluster is
// [Cluster].Absent.
type StrictPlugin interface {
	FilterPlugin
	// Strict reports whether that is so for the request. It is called for each decision, also concurrently.
	Strict(request *Request) bool
}

// MaxScore is the best score; the worst is 0.
const MaxScore = 100.0
