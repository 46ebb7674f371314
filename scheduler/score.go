package scheduler

import (
	"context"
	"fmt"
	"math/bits"
)

// score computes the weighted sums of all plugins' scores for the feasible clusters.
func (c *cycle) score(ctx context.Context) error {
	weights, err := c.profile.weights(c.request.Policy)
	if err != nil {
		return err
	}
	for i, p := range c.profile.scorers {
		if weights[i] == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.score.pre != nil {
			at := c.call.begin(p, atPreScore)
			status := p.score.pre.PreScore(ctx, &c.state, c.request, c.feasible)
			if status.Code() == Skip {
				continue
			}
			if status != nil {
				return c.call.failed(at, statusError(status))
			}
		}
		if err := c.scoreBy(ctx, p); err != nil {
			return err
		}
		if err := c.add(p, weights[i]); err != nil {
			return err
		}
	}
	return nil
}

// scoreBy calls a plugin to score the feasible clusters, and normalizes the scores.
func (c *cycle) scoreBy(ctx context.Context, p *plugin) error {
	c.scores = c.zeros(c.scores)
	at := c.call.begin(p, atScore)
	if p.score.all != nil {
		if status := p.score.all.ScoreAll(ctx, &c.state, c.request, c.feasible, c.scores); status != nil {
			return c.call.failed(at, statusError(status))
		}
	} else {
		for slot := range c.feasible.All() {
			cluster := c.snapshot.clusters[slot]
			c.call.cluster = cluster
			score, status := p.score.each.Score(ctx, &c.state, c.request, cluster)
			if status != nil {
				return c.call.failed(at, statusError(status))
			}
			c.scores[slot] = score
		}
		c.call.cluster = nil
	}
	if p.score.normalize != nil {
		at := c.call.begin(p, atNormalizeScore)
		if status := p.score.normalize.NormalizeScore(ctx, &c.state, c.request, c.feasible, c.scores); status != nil {
			return c.call.failed(at, statusError(status))
		}
	}
	return nil
}

// zeros returns memory for one score per slot. It reuses the slice if the capacity is sufficient. The scores of
// feasible clusters are 0.
func (c *cycle) zeros(scores []float64) []float64 {
	n := c.snapshot.Slots()
	if cap(scores) < n {
		return make([]float64, n)
	}
	scores = scores[:n]
	for i, word := range c.feasible.words {
		if word != 0 {
			clear(scores[i*wordBits : min((i+1)*wordBits, n)])
		}
	}
	return scores
}

// add adds the weighted scores of a plugin to the totals. It returns an error if a score is out of range.
func (c *cycle) add(p *plugin, weight float64) error {
	scores, totals := c.scores, c.candidates.scores
	for i, word := range c.feasible.words {
		for ; word != 0; word &= word - 1 {
			slot := i*wordBits + bits.TrailingZeros64(word)
			score := scores[slot]
			if !isScore(score) {
				c.call.cluster = c.snapshot.clusters[slot]
				return c.call.failed(&p.places[atScore], scoreError(score))
			}
			totals[slot] += weight * score
		}
	}
	c.record.score(c, p, weight)
	return nil
}

// isScore reports whether a score is in the range. NaN is not. It is inlined, because it is called for each cluster.
func isScore(score float64) bool { return score >= 0 && score <= MaxScore }

// scoreError returns the error of a score that is outside of the range.
func scoreError(score float64) error {
	return fmt.Errorf("score %v is not from 0 to %v", score, MaxScore)
}

// Normalize scales the scores of the set to the range from 0 to [MaxScore]: the lowest becomes 0, and the highest
// MaxScore. If all are equal, all become MaxScore, so that no cluster is preferred.
func Normalize(of Set, scores []float64) {
	first, least, greatest := true, 0.0, 0.0
	for slot := range of.All() {
		score := scores[slot]
		if first {
			first, least, greatest = false, score, score
		}
		least, greatest = min(least, score), max(greatest, score)
	}
	span := greatest - least
	for slot := range of.All() {
		if span > 0 {
			scores[slot] = (scores[slot] - least) / span * MaxScore
		} else if span == 0 {
			scores[slot] = MaxScore
		}
	}
}
