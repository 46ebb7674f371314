package scheduler

import (
	"context"
	"errors"
)

// keep finds out which feasible clusters must be chosen, because they were chosen before, and returns all feasible
// clusters that were. If fewer are wanted than must be chosen, the choice is among some clusters only, of which the
// healthy are preferred.
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

// spared are the clusters that were chosen before and stay whatever they lack, because their agents have not reported.
func (c *cycle) spared() Set {
	if c.state.bound.Empty() {
		return Set{}
	}
	unreported := c.snapshot.Where("scheduler:spared", spared)
	if unreported.Empty() {
		return Set{}
	}
	set := c.state.bound.Clone()
	set.Retain(unreported)
	return set
}

func spared(cluster *Cluster) bool { return cluster.Unreported && !cluster.Leaving }

func absent(cluster *Cluster) bool { return cluster.Absent }

func (c *cycle) healthy() Set {
	return c.snapshot.Where("scheduler:healthy", func(cluster *Cluster) bool { return cluster.Healthy })
}

// selectKeeping asks the SelectPlugins. What they drop of the kept clusters stays; if they refuse the request, so
// does all that was chosen before. If the choice is among clusters that were chosen before, a constraint leaves no
// place empty.
func (c *cycle) selectKeeping(ctx context.Context, stays Set) error {
	kept, wanted := c.candidates.kept, c.candidates.wanted
	if wanted >= 0 && kept.Len() == wanted && !kept.Empty() {
		return nil // the kept clusters rank first, and are all that is wanted
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

// staying is what is left of a choice when the request is refused: the clusters that were chosen before.
func (c *cycle) staying(chosen []Choice) []Choice {
	var stay []Choice
	for _, choice := range chosen {
		if c.isBound(choice.Cluster) {
			stay = append(stay, choice)
		}
	}
	return stay
}
