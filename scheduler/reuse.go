package scheduler

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// If all plugins evaluate each cluster independently of the others, a previous decision can be updated: only the
// clusters that have changed are evaluated, in their old and their new state. All others keep their position in the
// ranking. A decision stores a few more clusters of the ranking than it chose, so that it can be updated after it lost
// some.

const (
	// maxChanges is the maximum number of changed clusters that are evaluated one by one. With more changes, a full
	// decision is about as cheap.
	maxChanges = 16
	// spares is the number of next-best clusters that a decision stores.
	spares = 16
	// rounding is the difference of two scores below which only a full decision can rank them: batch forms may add scores
	// in another order.
	rounding = 1e-6
)

// tally is the state that a decision stores for the next one.
type tally struct {
	local      bool     // all plugins evaluated each cluster independently
	rejections []int32  // by plugin: the number of clusters that it was the first to reject
	spares     []Choice // the next-best clusters, the best first
}

// rankingLimit returns the maximum length of the stored ranking: the chosen clusters and, if the decision is local,
// spares.
func (r *Result) rankingLimit() int {
	if r.tally.local {
		return r.Wanted + spares
	}
	return r.Wanted
}

// choose sets the first clusters of a ranking, as many as are wanted, as the chosen ones and stores the others as
// spares.
func (r *Result) choose(ranking []Choice) {
	n := len(ranking)
	if r.Wanted >= 0 {
		n = min(n, r.Wanted)
	}
	r.Chosen, r.tally.spares = ranking[:n:n], ranking[n:]
}

// reuse returns the updated previous result, if it suffices for the decision. It must only be called if isLocal.
func (c *cycle) reuse(ctx context.Context) (_ Result, enough bool, _ error) {
	previous := c.request.Previous
	if previous == nil || !c.comparable(previous) {
		return Result{}, false, nil
	}
	changed, known := c.snapshot.changes(previous.snapshot)
	if !known || len(changed) > maxChanges {
		return Result{}, false, nil
	}
	until := c.state.until
	defer func() { c.state.until = until }() // evaluate overwrites until
	result := *previous
	result.Total = c.snapshot.Len()
	result.tally.rejections = slices.Clone(previous.tally.rejections)
	var gone []*Cluster
	var came []Choice
	for _, slot := range changed {
		before, after := previous.snapshot.Cluster(int(slot)), c.snapshot.Cluster(int(slot))
		was, err := c.evaluate(ctx, before)
		if err != nil {
			return Result{}, false, err
		}
		is, err := c.evaluate(ctx, after)
		if err != nil || was.until != is.until {
			return Result{}, false, err
		}
		same := before != nil && after != nil && before.Name == after.Name
		if !same && (c.isBound(before) || c.isBound(after)) {
			return Result{}, false, nil
		}
		was.count(&result, -1)
		is.count(&result, 1)
		if was.feasible {
			gone = append(gone, before)
		}
		if is.feasible {
			score, err := c.scoreOf(ctx, after)
			if err != nil {
				return Result{}, false, err
			}
			came = append(came, Choice{after, score})
		}
	}
	result.RejectedBy = c.profile.rejectedBy(result.tally.rejections)
	holds := c.rerank(&result, gone, came)
	return result, holds, nil
}

// rerank removes clusters from the ranking of a result and inserts others. It reports whether the ranking suffices to
// decide which clusters are chosen.
func (c *cycle) rerank(result *Result, gone []*Cluster, came []Choice) bool {
	if len(gone) == 0 && len(came) == 0 {
		return true
	}
	ranking := make([]Choice, 0, len(result.Chosen)+len(result.tally.spares)+len(came))
	for _, some := range [][]Choice{result.Chosen, result.tally.spares} {
		for _, choice := range some {
			if !slices.Contains(gone, choice.Cluster) {
				ranking = append(ranking, choice)
			}
		}
	}
	all := len(ranking)+len(came) == result.Feasible // false: the ranking omits clusters, which rank below its last
	for _, choice := range came {
		at, _ := slices.BinarySearchFunc(ranking, choice, c.compare)
		for _, next := range ranking[max(0, at-1):min(at+1, len(ranking))] {
			if next.Score != choice.Score && math.Abs(next.Score-choice.Score) < rounding {
				return false
			}
		}
		if all || at < len(ranking) {
			ranking = slices.Insert(ranking, at, choice)
		}
	}
	if !all && len(ranking) < result.Wanted {
		return false
	}
	if result.Wanted >= 0 {
		ranking = ranking[:min(len(ranking), result.rankingLimit())]
	}
	result.choose(ranking)
	return true
}

// compare returns a negative number if cluster a ranks before b. If the policy wants a number of best clusters, the
// order is that of [Candidates.Better].
func (c *cycle) compare(a, b Choice) int {
	picks := c.isPickN()
	if picks {
		if by := first(c.isKept(a.Cluster), c.isKept(b.Cluster)); by != 0 {
			return by
		}
	}
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	if picks {
		if by := first(c.isPlaced(a.Cluster), c.isPlaced(b.Cluster)); by != 0 {
			return by
		}
	}
	return strings.Compare(a.Cluster.Name, b.Cluster.Name)
}

// first returns -1 if only a is true, 1 if only b is true, and 0 otherwise.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// filterResult is the result of the filters for one cluster.
type filterResult struct {
	evaluated bool // false: there is no cluster, or the policy does not name it
	feasible  bool
	by        int // the index of the plugin that rejects the cluster
	until     time.Time
}

// count adds by to the number of feasible clusters, or to the number of clusters that the plugin rejects.
func (j *filterResult) count(result *Result, by int) {
	switch {
	case !j.evaluated:
	case j.feasible:
		result.Feasible += by
	default:
		result.tally.rejections[j.by] += int32(by)
	}
}

// evaluate calls the filters for one cluster, which may be nil.
func (c *cycle) evaluate(ctx context.Context, cluster *Cluster) (filterResult, error) {
	if cluster == nil || !c.named(cluster.Name) {
		return filterResult{}, nil
	}
	c.call.cluster = cluster
	c.state.until = time.Time{}
	for _, p := range c.profile.filters {
		if c.answers.skips[p.index] {
			continue
		}
		at := c.call.begin(p, atFilter)
		switch status := p.filter.each.Filter(ctx, &c.state, c.request, cluster); status.Code() {
		case Success:
		case Unschedulable:
			if c.isBound(cluster) && isSpared(cluster) && (cluster.Absent || !p.filter.isStrict(c.request)) {
				continue
			}
			c.call.cluster = nil
			return filterResult{evaluated: true, by: p.index, until: c.state.until}, nil
		default:
			return filterResult{}, c.call.failed(at, statusError(status))
		}
	}
	c.call.cluster = nil
	return filterResult{evaluated: true, feasible: true, until: c.state.until}, nil
}

func (c *cycle) isBound(cluster *Cluster) bool {
	return cluster != nil && slices.Contains(c.request.Bound, cluster.Name)
}

func (c *cycle) isKept(cluster *Cluster) bool { return c.isBound(cluster) && c.request.kept(cluster) }

func (c *cycle) isPlaced(cluster *Cluster) bool {
	return c.isBound(cluster) || slices.Contains(c.request.Placed, cluster.Name)
}

// comparable reports whether a result is that of the same request and profile for a snapshot of the same cache.
func (c *cycle) comparable(previous *Result) bool {
	return previous.tally.local && c.record == nil && previous.profile == c.profile &&
		previous.request.Policy == c.request.Policy &&
		previous.snapshot.columns == c.snapshot.columns && c.snapshot.columns != nil &&
		slices.Equal(previous.request.Bound, c.request.Bound) && slices.Equal(previous.request.Placed, c.request.Placed) &&
		previous.request.Failover == c.request.Failover && (!c.isPickN() || len(c.request.Bound) <= c.request.wanted()) &&
		(previous.Until.IsZero() || c.request.Now.Before(previous.Until))
}

// isLocal reports whether all plugins evaluate each cluster independently of the others.
func (c *cycle) isLocal() bool {
	weights, err := c.profile.weights(c.request.Policy)
	if err != nil {
		return false
	}
	scorer := 0
	for i := range c.profile.plugins {
		p := &c.profile.plugins[i]
		scores := false
		if p.score.each != nil {
			scores = weights[scorer] != 0
			scorer++
		}
		decides := p.filter.each != nil || scores || p.filter.pre != nil || p.filter.post != nil || p.reserve != nil
		if p.selects != nil && p.selects.Selects(c.request) || p.reserve != nil || p.filter.post != nil {
			return false
		}
		if decides && (p.local == nil || !p.local.Local(&c.state, c.request)) {
			return false
		}
	}
	return true
}

// named reports whether the policy permits a cluster with this name.
func (c *cycle) named(name string) bool {
	spec := c.request.Policy.Spec()
	return spec.Type != v1alpha1.PickFixed || slices.Contains(spec.ClusterNames, name)
}

// scoreOf returns the weighted sum of a cluster's scores, or 0 if scores do not matter.
func (c *cycle) scoreOf(ctx context.Context, cluster *Cluster) (float64, error) {
	if !c.isPickN() {
		return 0, nil
	}
	weights, err := c.profile.weights(c.request.Policy)
	if err != nil {
		return 0, err
	}
	c.call.cluster = cluster
	defer func() { c.call.cluster = nil }()
	sum := 0.0
	for i, p := range c.profile.scorers {
		if weights[i] == 0 {
			continue
		}
		if p.score.pre != nil {
			at := c.call.begin(p, atPreScore)
			status := p.score.pre.PreScore(ctx, &c.state, c.request, c.feasible)
			if status.Code() == Skip {
				continue
			}
			if status != nil {
				return 0, c.call.failed(at, statusError(status))
			}
		}
		at := c.call.begin(p, atScore)
		score, status := p.score.each.Score(ctx, &c.state, c.request, cluster)
		if status != nil {
			return 0, c.call.failed(at, statusError(status))
		}
		if !isScore(score) {
			return 0, c.call.failed(at, scoreError(score))
		}
		sum += weights[i] * score
	}
	return sum, nil
}
