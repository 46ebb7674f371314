package scheduler

import (
	"context"
	"errors"
	"math/bits"
	"runtime/debug"
	"slices"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// cycle is the state of one decision. Cycles are pooled: a later decision reuses their memory.
type cycle struct {
	profile  *profile
	snapshot *Snapshot
	request  *Request
	record   *record // nil: no diagnosis is requested
	state    CycleState
	call     call
	answers  answers

	feasible   Set
	bound      []uint64
	scores     []float64 // of the plugin that currently scores; candidates has the sums
	candidates Candidates
}

// answers are the results of the plugins so far. The slices are indexed by plugin.
type answers struct {
	refused  bool    // a plugin rejected the request as a whole, so no new cluster is chosen
	skips    []bool  // the plugin does not apply to the request
	rejected []int32 // the number of clusters that the plugin was the first to reject
}

// reset deletes the answers of an earlier cycle.
func (a *answers) reset(plugins int) {
	a.refused, a.skips, a.rejected = false, cleared(a.skips, plugins), cleared(a.rejected, plugins)
}

// prepare initializes the cycle for a decision. It reuses the memory of earlier decisions.
func (c *cycle) prepare(profile *profile, snapshot *Snapshot, request *Request, record *record) {
	c.profile, c.snapshot, c.request, c.record = profile, snapshot, request, record
	c.call.reset()
	c.answers.reset(len(profile.plugins))
	c.feasible.words = append(c.feasible.words[:0], snapshot.present.words...)
	c.state = CycleState{snapshot: snapshot, bound: named(snapshot, request.Bound, c.bound)}
	c.state.placed = placedOn(snapshot, request, c.state.bound)
	if len(request.Bound) > 0 {
		c.bound = c.state.bound.words
	}
}

// release drops all references to objects that do not belong to the cycle.
func (c *cycle) release() {
	c.profile, c.snapshot, c.request, c.record = nil, nil, nil, nil
	c.call.reset()
	c.state = CycleState{}
	c.candidates.snapshot, c.candidates.dropped = nil, nil
	c.candidates.kept, c.candidates.placed = Set{}, Set{}
}

// cleared returns n zero values. It reuses the memory of the slice if the capacity is sufficient.
func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// errRefused ends a cycle early with a result: a plugin rejected the request as a whole.
var errRefused = errors.New("refused")

func (c *cycle) run(ctx context.Context) (result Result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result, err = Result{}, c.call.failed(c.call.at.Load(), &PanicError{panicked, debug.Stack()})
		}
	}()
	err = c.preFilter(ctx)
	local := false
	if err == nil {
		local = !c.answers.refused && c.isLocal()
		if local {
			if result, holds, err := c.reuse(ctx); holds || err != nil {
				return result, err
			}
		}
		err = c.filter(ctx)
	}
	result = Result{Wanted: c.request.wanted(), Total: c.snapshot.Len(), Feasible: c.feasible.Len(),
		tally: tally{local: local}}
	if err == nil && result.Feasible < result.Wanted {
		result.Hints, err = c.postFilter(ctx)
	}
	if err == nil {
		err = c.choose(ctx, &result)
	}
	if err == nil {
		err = c.reserve(ctx, result.Chosen)
	}
	if errors.Is(err, errRefused) {
		result.Chosen, result.tally, err = c.staying(result.Chosen), tally{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	result.RejectedBy = c.profile.rejectedBy(c.answers.rejected)
	result.tally.rejections = slices.Clone(c.answers.rejected)
	result.Until = c.state.until
	if c.record != nil {
		err = c.explain(ctx, &result)
	}
	return result, err
}

// filter removes the clusters that a plugin rejects from the feasible set.
func (c *cycle) filter(ctx context.Context) error {
	left, spared := c.feasible.Len(), c.unreportedBound()
	for _, p := range c.profile.filters {
		if c.answers.skips[p.index] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		spared.Retain(c.feasible)
		if err := c.filterBy(ctx, p); err != nil {
			return err
		}
		if !spared.Empty() {
			stays := spared
			if p.filter.isStrict(c.request) {
				stays = spared.Clone()
				stays.Retain(c.snapshot.Where("scheduler:absent", absent))
			}
			c.feasible.Insert(stays)
		}
		if now := c.feasible.Len(); now < left {
			c.answers.rejected[p.index], left = int32(left-now), now
		}
	}
	return nil
}

// preFilter removes the clusters that the policy does not name (PickFixed) from the feasible set and calls all
// PreFilter plugins.
func (c *cycle) preFilter(ctx context.Context) error {
	if spec := c.request.Policy.Spec(); spec.Type == v1alpha1.PickFixed {
		named := NewSet(c.snapshot.Slots())
		for _, name := range spec.ClusterNames {
			if slot, there := c.snapshot.Slot(name); there {
				named.Add(slot)
			}
		}
		c.feasible.Retain(named)
	}
	for i := range c.profile.plugins {
		p := &c.profile.plugins[i]
		if p.filter.pre == nil {
			continue
		}
		at := c.call.begin(p, atPreFilter)
		switch status := p.filter.pre.PreFilter(ctx, &c.state, c.request); status.Code() {
		case Success:
		case Skip:
			c.answers.skips[p.index] = true
		case Unschedulable:
			c.answers.rejected[p.index]++
			c.record.refuse(p.Name(), status.Reason())
			if c.state.bound.Empty() {
				c.feasible.Clear()
				return errRefused
			}
			// Clusters that were chosen before stay. The other plugins are still called, for these clusters.
			c.answers.refused, c.answers.skips[p.index] = true, true
		default:
			return c.call.failed(at, status.err)
		}
	}
	if c.answers.refused {
		c.feasible.Retain(c.state.bound)
	}
	return nil
}

func (c *cycle) filterBy(ctx context.Context, p *plugin) error {
	at := c.call.begin(p, atFilter)
	if p.filter.all != nil {
		if status := p.filter.all.FilterAll(ctx, &c.state, c.request, c.feasible); status != nil {
			return c.call.failed(at, statusError(status))
		}
		return nil
	}
	// The local variables keep the overhead per call low: the loop may call the plugin for thousands of clusters.
	filter, state, request, clusters := p.filter.each, &c.state, c.request, c.snapshot.clusters
	for i, word := range c.feasible.words {
		for ; word != 0; word &= word - 1 {
			slot := i*wordBits + bits.TrailingZeros64(word)
			c.call.cluster = clusters[slot]
			status := filter.Filter(ctx, state, request, clusters[slot])
			if status == nil {
				continue
			}
			if status.code != Unschedulable {
				return c.call.failed(at, statusError(status))
			}
			c.feasible.Remove(slot)
		}
	}
	c.call.cluster = nil
	return nil
}

func (c *cycle) postFilter(ctx context.Context) ([]string, error) {
	var hints []string
	for i := range c.profile.plugins {
		p := &c.profile.plugins[i]
		if p.filter.post == nil || c.answers.skips[p.index] {
			continue
		}
		at := c.call.begin(p, atPostFilter)
		status := p.filter.post.PostFilter(ctx, &c.state, c.request, c.feasible)
		if status.Code() == Error {
			return nil, c.call.failed(at, status.err)
		}
		if reason := status.Reason(); status.Code() == Unschedulable && reason != "" {
			hints = append(hints, p.Name()+": "+reason)
		}
	}
	return hints, nil
}

// isPickN reports whether the policy wants a number of best clusters, and not all or named clusters.
func (c *cycle) isPickN() bool { return c.request.Policy.Spec().Type == v1alpha1.PickN }

// choose ranks the feasible clusters if the ranking matters, and chooses from them.
func (c *cycle) choose(ctx context.Context, result *Result) error {
	picks := c.isPickN()
	selects := !c.answers.refused && slices.ContainsFunc(c.profile.selecters, func(p *plugin) bool {
		return p.selects.Selects(c.request)
	})
	ranked := selects || picks || c.record != nil
	if result.Feasible == 0 || picks && result.Wanted == 0 && c.record == nil {
		return nil
	}
	c.candidates.snapshot, c.candidates.left = c.snapshot, c.feasible
	c.candidates.placed, c.candidates.wanted = c.state.placed, result.Wanted
	c.candidates.dropped = c.record.droppedReasons()
	c.candidates.scores = c.zeros(c.candidates.scores)
	stays, choice := c.keep(result.Wanted)
	if ranked {
		if err := c.score(ctx); err != nil {
			return err
		}
	}
	c.record.ranked(c)
	if choice.words != nil {
		c.candidates.Keep(choice, func(int) string { return "is not needed, because fewer clusters are desired" })
	}
	if selects {
		if err := c.selectKeeping(ctx, stays); err != nil {
			return err
		}
	}
	var slots []int32
	if picks {
		slots = c.candidates.Best(c.feasible, result.rankingLimit())
	} else {
		slots = c.byName()
	}
	ranking := make([]Choice, len(slots))
	for i, slot := range slots {
		ranking[i] = Choice{c.snapshot.clusters[slot], c.candidates.scores[slot]}
	}
	result.choose(ranking)
	return nil
}

// byName returns the slots of the remaining clusters, sorted by name. The next call overwrites the slice.
func (c *cycle) byName() []int32 {
	slots := cleared(c.candidates.heap, c.snapshot.Slots()+1)
	n := 0
	if c.snapshot.ordered {
		for slot := range c.feasible.All() {
			slots[n] = int32(slot)
			n++
		}
	} else {
		// The loop has no branch on whether a cluster remains, because the branch would be unpredictable.
		for _, slot := range c.snapshot.order {
			slots[n] = slot
			n += int(c.feasible.words[slot/wordBits] >> (slot % wordBits) & 1)
		}
	}
	c.candidates.heap = slots[:0]
	return slots[:n]
}

func (c *cycle) selects(ctx context.Context) error {
	for _, p := range c.profile.selecters {
		if !p.selects.Selects(c.request) {
			continue
		}
		at := c.call.begin(p, atSelect)
		left := c.feasible.Len()
		switch status := p.selects.Select(ctx, &c.state, c.request, &c.candidates); status.Code() {
		case Success:
		case Unschedulable:
			c.answers.rejected[p.index]++
			c.record.refuse(p.Name(), status.Reason())
			return errRefused
		default:
			return c.call.failed(at, statusError(status))
		}
		now := c.feasible.Len()
		if now < left && now < c.candidates.wanted {
			c.answers.rejected[p.index]++
		}
		c.record.selected(p.Name())
	}
	return nil
}

// reserve calls Reserve of all plugins for all chosen clusters. If one call fails, it unreserves all of them.
func (c *cycle) reserve(ctx context.Context, chosen []Choice) error {
	if c.record != nil || !c.profile.reserves {
		return nil
	}
	for n, choice := range chosen {
		for i := range c.profile.plugins {
			p := &c.profile.plugins[i]
			if p.reserve == nil {
				continue
			}
			at := c.call.begin(p, atReserve)
			status := p.reserve.Reserve(ctx, &c.state, c.request, choice.Cluster)
			if status == nil {
				continue
			}
			unreserve(ctx, c.profile.plugins[:i+1], &c.state, c.request, choice.Cluster)
			for _, before := range slices.Backward(chosen[:n]) {
				unreserve(ctx, c.profile.plugins, &c.state, c.request, before.Cluster)
			}
			if status.Code() == Unschedulable {
				c.answers.rejected[p.index]++
				return errRefused
			}
			return c.call.failed(at, statusError(status))
		}
	}
	return nil
}
