package scheduler

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// A decision that was made before holds as long as no change of a cluster can have an effect on it. Where all plugins judge
// each cluster by itself, the changed ones are judged as they were and as they are, and the rest need not be looked at.

// maxChanges is how many changed clusters are judged one by one. To decide anew costs as much as to judge about as many.
const maxChanges = 32

// ofOthers is how close two scores may be until it takes a whole cycle to tell them apart: batch forms may add in another order.
const ofOthers = 1e-6

// tally is what a decision remembers for the next one.
type tally struct {
	rejections []int32 // by plugin: how many clusters it was the first to refuse
	local      bool    // all plugins judged each cluster by itself
}

// reuse returns the previous result, brought up to date, if it still holds.
func (c *cycle) reuse(ctx context.Context) (Result, bool, error) {
	previous := c.request.Previous
	if previous == nil || !c.comparable(previous) {
		return Result{}, false, nil
	}
	changed, known := c.snapshot.columns.changes(previous.snapshot.generation, c.snapshot.generation)
	if !known || len(changed) > maxChanges {
		return Result{}, false, nil
	}
	until := c.state.until
	defer func() { c.state.until = until }() // what was said of single clusters is not of the decision
	result := *previous
	result.Total = c.snapshot.Len()
	result.tally.rejections = slices.Clone(previous.tally.rejections)
	for _, slot := range changed {
		holds, err := c.bear(ctx, &result, previous.snapshot.at(slot), c.snapshot.at(slot))
		if !holds || err != nil {
			return Result{}, false, err
		}
	}
	result.RejectedBy = c.rejectedBy(result.tally.rejections)
	return result, true, nil
}

// bear brings a result up to date with the change of one cluster, and reports whether it holds in spite of it.
func (c *cycle) bear(ctx context.Context, result *Result, before, after *Cluster) (holds bool, err error) {
	was, err := c.judge(ctx, before)
	if err != nil {
		return false, err
	}
	is, err := c.judge(ctx, after)
	if err != nil || was.until != is.until {
		return false, err
	}
	same := before != nil && after != nil && before.Name == after.Name
	if !same && (c.isBound(before) || c.isBound(after)) {
		return false, nil
	}
	if at := result.place(before); at >= 0 {
		if !same || !is.feasible {
			return false, nil
		}
		if c.request.Policy.Spec().Type == v1alpha1.PickN {
			score, err := c.scoreOf(ctx, before)
			if err != nil {
				return false, err
			}
			if now, err := c.scoreOf(ctx, after); err != nil || now != score {
				return false, err
			}
		}
		result.Chosen = slices.Clone(result.Chosen)
		result.Chosen[at].Cluster = after
		return true, nil
	}
	was.count(result, -1)
	is.count(result, 1)
	if !is.feasible {
		return true, nil
	}
	better, err := c.mayBeChosen(ctx, result, after)
	return !better, err
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

// judge asks the plugins about one cluster, which may be nil.
func (c *cycle) judge(ctx context.Context, cluster *Cluster) (judgement, error) {
	if cluster == nil || !c.named(cluster.Name) {
		return judgement{}, nil
	}
	c.cluster = cluster
	c.state.until = time.Time{}
	for _, p := range c.profile.filters {
		if c.skips[p.index] {
			continue
		}
		at := c.ask(p, atFilter)
		switch status := p.filter.Filter(ctx, &c.state, c.request, cluster); status.Code() {
		case Success:
		case Unschedulable:
			c.cluster = nil
			return judgement{asked: true, by: p.index, until: c.state.until}, nil
		default:
			return judgement{}, c.failed(at, statusError(status))
		}
	}
	c.cluster = nil
	return judgement{asked: true, feasible: true, until: c.state.until}, nil
}

func (c *cycle) isBound(cluster *Cluster) bool {
	return cluster != nil && slices.Contains(c.request.Bound, cluster.Name)
}

// place is where among the chosen a cluster is; negative: nowhere.
func (r *Result) place(cluster *Cluster) int {
	if cluster == nil {
		return -1
	}
	return slices.IndexFunc(r.Chosen, func(c Choice) bool { return c.Cluster == cluster })
}

// comparable reports whether a result answers the same question about an earlier state of the same fleet.
func (c *cycle) comparable(previous *Result) bool {
	return previous.tally.local && c.record == nil && previous.profile == c.profile && previous.request.Policy == c.request.Policy &&
		previous.snapshot.columns == c.snapshot.columns && c.snapshot.columns != nil &&
		slices.Equal(previous.request.Bound, c.request.Bound) &&
		(previous.Until.IsZero() || c.request.Now.Before(previous.Until)) && c.local()
}

// local reports whether all plugins judge each cluster by itself.
func (c *cycle) local() bool {
	weights, err := c.profile.weights(c.request.Policy)
	if err != nil {
		return false
	}
	scorer := 0
	for i := range c.profile.plugins {
		p := &c.profile.plugins[i]
		scores := false
		if p.score != nil {
			scores = weights[scorer] != 0
			scorer++
		}
		decides := p.filter != nil || scores || p.preFilter != nil || p.postFilter != nil || p.reserve != nil
		if p.selects != nil && p.selects.Selects(c.request) || p.reserve != nil || p.postFilter != nil {
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

// mayBeChosen reports whether a cluster that can might be among the chosen.
func (c *cycle) mayBeChosen(ctx context.Context, previous *Result, cluster *Cluster) (bool, error) {
	if spec := c.request.Policy.Spec(); spec.Type != v1alpha1.PickN || previous.Missing() > 0 {
		return true, nil
	}
	if previous.Wanted == 0 {
		return false, nil
	}
	score, err := c.scoreOf(ctx, cluster)
	if err != nil {
		return false, err
	}
	worst := previous.Chosen[len(previous.Chosen)-1]
	switch {
	case math.Abs(score-worst.Score) > ofOthers:
		return score > worst.Score, nil
	case slices.Contains(c.request.Bound, worst.Cluster.Name):
		return score != worst.Score, nil
	default:
		return score != worst.Score || strings.Compare(cluster.Name, worst.Cluster.Name) < 0, nil
	}
}

// scoreOf is the weighted sum of a cluster's scores.
func (c *cycle) scoreOf(ctx context.Context, cluster *Cluster) (float64, error) {
	weights, err := c.profile.weights(c.request.Policy)
	if err != nil {
		return 0, err
	}
	c.cluster = cluster
	defer func() { c.cluster = nil }()
	sum := 0.0
	for i, p := range c.profile.scorers {
		if weights[i] == 0 {
			continue
		}
		if p.preScore != nil {
			at := c.ask(p, atPreScore)
			status := p.preScore.PreScore(ctx, &c.state, c.request, c.feasible)
			if status.Code() == Skip {
				continue
			}
			if status != nil {
				return 0, c.failed(at, statusError(status))
			}
		}
		at := c.ask(p, atScore)
		score, status := p.score.Score(ctx, &c.state, c.request, cluster)
		if status != nil {
			return 0, c.failed(at, statusError(status))
		}
		sum += weights[i] * score
	}
	return sum, nil
}
