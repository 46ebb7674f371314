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

// Where all plugins judge each cluster by itself, a decision is brought up to date by judging the clusters that have
// changed, as they were and as they are. All others are where they were in the ranking. A decision remembers a little
// more of that than it chose, so that it can do without a few.

const (
	// maxChanges is how many changed clusters are judged one by one. To decide anew costs as much as to judge about as
	// many.
	maxChanges = 16
	// spares is how many are remembered that would be chosen next.
	spares = 16
	// rounding is how close two scores may be until it takes a whole cycle to tell them apart: batch forms may add in
	// another order.
	rounding = 1e-6
)

// tally is what a decision remembers for the next one.
type tally struct {
	local      bool     // all plugins judged each cluster by itself
	rejections []int32  // by plugin: how many clusters it was the first to refuse
	spares     []Choice // who would be chosen next, the best first
}

// remembers is how long a ranking is of which not all are chosen.
func (r *Result) remembers() int {
	if r.tally.local {
		return r.Wanted + spares
	}
	return r.Wanted
}

// choose takes the first of a ranking, as many as are wanted, and remembers the others.
func (r *Result) choose(ranking []Choice) {
	n := len(ranking)
	if r.Wanted >= 0 {
		n = min(n, r.Wanted)
	}
	r.Chosen, r.tally.spares = ranking[:n:n], ranking[n:]
}

// reuse returns the previous result, brought up to date, if that tells enough. It must be called only if isLocal.
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
	defer func() { c.state.until = until }() // what was said of single clusters is not of the decision
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

// rerank takes clusters out of the ranking of a result, and puts others in. It reports whether that tells who is to be
// chosen.
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
	all := len(ranking)+len(came) == result.Feasible // or there are others, who are worse than the last of the ranking
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
		ranking = ranking[:min(len(ranking), result.remembers())]
	}
	result.choose(ranking)
	return true
}

// compare is negative if the first of two clusters comes first, as [Candidates.Better] has it where a number of them
// are wanted.
func (c *cycle) compare(a, b Choice) int {
	picks := c.picks()
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

// first is negative if only the first of two holds, and positive if only the second does.
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

// judgement is what the plugins say of a cluster.
type judgement struct {
	asked    bool // or there is none, or it does not come into question
	feasible bool
	by       int // the index of the plugin that refuses it
	until    time.Time
}

// count adds a cluster to those that can, or to those that a plugin refuses; or takes it away.
func (j *judgement) count(result *Result, by int) {
	switch {
	case !j.asked:
	case j.feasible:
		result.Feasible += by
	default:
		result.tally.rejections[j.by] += int32(by)
	}
}

// evaluate asks the plugins about one cluster, which may be nil.
func (c *cycle) evaluate(ctx context.Context, cluster *Cluster) (judgement, error) {
	if cluster == nil || !c.named(cluster.Name) {
		return judgement{}, nil
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
			if c.isBound(cluster) && spared(cluster) && (cluster.Absent || !p.filter.isStrict(c.request)) {
				continue
			}
			c.call.cluster = nil
			return judgement{asked: true, by: p.index, until: c.state.until}, nil
		default:
			return judgement{}, c.call.failed(at, statusError(status))
		}
	}
	c.call.cluster = nil
	return judgement{asked: true, feasible: true, until: c.state.until}, nil
}

func (c *cycle) isBound(cluster *Cluster) bool {
	return cluster != nil && slices.Contains(c.request.Bound, cluster.Name)
}

func (c *cycle) isKept(cluster *Cluster) bool { return c.isBound(cluster) && c.request.kept(cluster) }

func (c *cycle) isPlaced(cluster *Cluster) bool {
	return c.isBound(cluster) || slices.Contains(c.request.Placed, cluster.Name)
}

// comparable reports whether a result answers the same question about an earlier state of the same fleet.
func (c *cycle) comparable(previous *Result) bool {
	return previous.tally.local && c.record == nil && previous.profile == c.profile &&
		previous.request.Policy == c.request.Policy &&
		previous.snapshot.columns == c.snapshot.columns && c.snapshot.columns != nil &&
		slices.Equal(previous.request.Bound, c.request.Bound) && slices.Equal(previous.request.Placed, c.request.Placed) &&
		previous.request.Failover == c.request.Failover && (!c.picks() || len(c.request.Bound) <= c.request.wanted()) &&
		(previous.Until.IsZero() || c.request.Now.Before(previous.Until))
}

// isLocal reports whether all plugins judge each cluster by itself.
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

// named reports whether a cluster comes into question by its name.
func (c *cycle) named(name string) bool {
	spec := c.request.Policy.Spec()
	return spec.Type != v1alpha1.PickFixed || slices.Contains(spec.ClusterNames, name)
}

// scoreOf is the weighted sum of a cluster's scores, if they matter.
func (c *cycle) scoreOf(ctx context.Context, cluster *Cluster) (float64, error) {
	if !c.picks() {
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
		if err := invalidScore(score); err != nil {
			return 0, c.call.failed(at, err)
		}
		sum += weights[i] * score
	}
	return sum, nil
}
