package scheduler

import (
	"context"
	"errors"
)

// keep computes which clusters stay because they were chosen before. Stays are the feasible clusters that were chosen
// before. Those of them that must be chosen again become the kept candidates. If more of them must be chosen than are
// wanted, choice is the set to which the decision is restricted, and healthy clusters are preferred; otherwise choice
// is the zero Set.
func (c *cycle) keep(wanted int) (stays, choice Set) {
	c.candidates.kept = Set{}
	if c.state.bound.Empty() {
		return Set{}, Set{}
	}
	stays = c.state.bound.Clone()
	stays.Retain(c.feasible)
	kept := stays.Clone()
	if !c.request.keeps() {
		kept.Discard(c.healthy())
	}
	if wanted >= 0 && kept.Len() > wanted {
		choice = c.feasible.Clone()
		if c.request.keeps() {
			choice = stays
		}
		well := choice.Clone()
		well.Retain(c.healthy())
		if well.Len() >= wanted {
			choice, kept = well, NewSet(c.snapshot.Slots())
		} else {
			kept = well
		}
		stays.Retain(choice)
	}
	c.candidates.kept = kept
	return stays, choice
}

// unreportedBound returns the clusters that were chosen before and that filters must not reject, because their agents
// have not reported.
func (c *cycle) unreportedBound() Set {
	if c.state.bound.Empty() {
		return Set{}
	}
	unreported := c.snapshot.Where("scheduler:spared", isSpared)
	if unreported.Empty() {
		return Set{}
	}
	set := c.state.bound.Clone()
	set.Retain(unreported)
	return set
}

func isSpared(cluster *Cluster) bool { return cluster.Unreported && !cluster.Leaving }

func absent(cluster *Cluster) bool { return cluster.Absent }

func (c *cycle) healthy() Set {
	return c.snapshot.Where("scheduler:healthy", func(cluster *Cluster) bool { return cluster.Healthy })
}

// selectKeeping calls the SelectPlugins. Kept clusters stay even if a plugin drops them. If a plugin rejects the
// request, all clusters that were chosen before stay. If fewer clusters than wanted remain and the request keeps bound
// clusters, clusters that were chosen before fill the rest, whatever the constraints are.
func (c *cycle) selectKeeping(ctx context.Context, stays Set) error {
	kept, wanted := c.candidates.kept, c.candidates.wanted
	if wanted >= 0 && kept.Len() == wanted && !kept.Empty() {
		return nil // the kept clusters rank first and are sufficient
	}
	switch err := c.selects(ctx); {
	case errors.Is(err, errRefused) && !stays.Empty():
		c.feasible.Clear()
		c.feasible.Insert(stays)
	case err != nil:
		return err
	}
	c.feasible.Insert(kept)
	if missing := wanted - c.feasible.Len(); missing > 0 && c.request.keeps() {
		rest := stays.Clone()
		rest.Discard(c.feasible)
		for _, slot := range c.candidates.Best(rest, missing) {
			c.feasible.Add(int(slot))
		}
	}
	return nil
}

// staying returns the chosen clusters that were already chosen before. They stay if a plugin rejects the request.
func (c *cycle) staying(chosen []Choice) []Choice {
	var stay []Choice
	for _, choice := range chosen {
		if c.isBound(choice.Cluster) {
			stay = append(stay, choice)
		}
	}
	return stay
}
