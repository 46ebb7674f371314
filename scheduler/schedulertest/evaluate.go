package schedulertest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/muster-sdk/muster/scheduler"
)

// pluginResults contains the results of a plugin for a fleet, by cluster name.
type pluginResults struct {
	Refused map[string]string  // by rejected cluster: the reason
	Scores  map[string]float64 // of the clusters that are not rejected
}

func (o pluginResults) String() string {
	return fmt.Sprintf("refuses %v, scores %v", o.Refused, o.Scores)
}

// pluginCall is a call of a plugin for one fleet and one request.
type pluginCall struct {
	t        testing.TB
	plugin   scheduler.Plugin
	state    *scheduler.CycleState
	request  *scheduler.Request
	feasible scheduler.Set
	batch    bool // uses the batch forms, if the plugin has them
	pluginResults
}

// evaluate returns the results of the plugin for a fleet. If batch is true, it uses the batch forms that the plugin
// has.
func (s *suite) evaluate(t testing.TB, snapshot *scheduler.Snapshot, request *scheduler.Request,
	batch bool) pluginResults {
	t.Helper()
	q := &pluginCall{
		t: t, plugin: s.made, state: scheduler.NewCycleState(snapshot, request), request: request,
		feasible: snapshot.All().Clone(),
		batch:    batch, pluginResults: pluginResults{map[string]string{}, map[string]float64{}},
	}
	q.filter(context.Background())
	if !q.feasible.Empty() {
		q.score(context.Background())
	}
	return q.pluginResults
}

func (q *pluginCall) filter(ctx context.Context) {
	q.t.Helper()
	if pre, is := q.plugin.(scheduler.PreFilterPlugin); is {
		switch status := pre.PreFilter(ctx, q.state, q.request); status.Code() {
		case scheduler.Success:
		case scheduler.Skip:
			return
		case scheduler.Unschedulable:
			q.feasible.Clear()
			return
		default:
			q.t.Fatalf("PreFilter: %s", status.Reason())
		}
	}
	plugin, is := q.plugin.(scheduler.FilterPlugin)
	if !is {
		return
	}
	snapshot, before := q.state.Snapshot(), q.feasible.Clone()
	all, is := q.plugin.(scheduler.BatchFilterPlugin)
	if q.batch && is {
		if status := all.FilterAll(ctx, q.state, q.request, q.feasible); status != nil {
			q.t.Fatalf("FilterAll: %s", status.Reason())
		}
		added := q.feasible.Clone()
		if added.Discard(before); !added.Empty() {
			q.t.Fatal("FilterAll has put clusters in")
		}
	}
	for slot := range before.All() {
		cluster := snapshot.Cluster(slot)
		status := plugin.Filter(ctx, q.state, q.request, cluster)
		switch status.Code() {
		case scheduler.Success:
			if !q.feasible.Has(slot) {
				q.Refused[cluster.Name] = "by FilterAll, and not by Filter"
			}
		case scheduler.Unschedulable:
			verb, _, _ := strings.Cut(status.Reason(), " ")
			if !strings.HasSuffix(verb, "s") {
				q.t.Errorf("reason %q does not begin with a verb in the third person, such as has or is", status.Reason())
			}
			q.Refused[cluster.Name] = status.Reason()
			if q.batch && is && q.feasible.Has(slot) {
				delete(q.Refused, cluster.Name)
			}
			q.feasible.Remove(slot)
		default:
			q.t.Fatalf("Filter of %s: %s", cluster.Name, status.Reason())
		}
	}
}

func (q *pluginCall) score(ctx context.Context) {
	q.t.Helper()
	plugin, is := q.plugin.(scheduler.ScorePlugin)
	if !is {
		return
	}
	before := q.feasible.Clone()
	if pre, is := q.plugin.(scheduler.PreScorePlugin); is {
		status := pre.PreScore(ctx, q.state, q.request, q.feasible)
		if status.Code() == scheduler.Skip {
			return
		}
		if status != nil {
			q.t.Fatalf("PreScore: %s", status.Reason())
		}
	}
	snapshot := q.state.Snapshot()
	scores := make([]float64, snapshot.Slots())
	if all, is := q.plugin.(scheduler.BatchScorePlugin); is && q.batch {
		if status := all.ScoreAll(ctx, q.state, q.request, q.feasible, scores); status != nil {
			q.t.Fatalf("ScoreAll: %s", status.Reason())
		}
	} else {
		for slot := range q.feasible.All() {
			score, status := plugin.Score(ctx, q.state, q.request, snapshot.Cluster(slot))
			if status != nil {
				q.t.Fatalf("Score of %s: %s", snapshot.Cluster(slot).Name, status.Reason())
			}
			scores[slot] = score
		}
	}
	if normalize, is := q.plugin.(scheduler.NormalizeScorePlugin); is {
		if status := normalize.NormalizeScore(ctx, q.state, q.request, q.feasible, scores); status != nil {
			q.t.Fatalf("NormalizeScore: %s", status.Reason())
		}
	}
	if !slices.Equal(slices.Collect(before.All()), slices.Collect(q.feasible.All())) {
		q.t.Fatal("scoring has changed who can")
	}
	for slot := range q.feasible.All() {
		name, score := snapshot.Cluster(slot).Name, scores[slot]
		if math.IsNaN(score) || score < 0 || score > scheduler.MaxScore {
			q.t.Errorf("the score of %s is %v, which is not from 0 to %v", name, score, scheduler.MaxScore)
		}
		q.Scores[name] = score
	}
}

// same reports whether two results are equal, except for rounding errors of sums in another order.
func same(a, b pluginResults) bool {
	if fmt.Sprint(a.Refused) != fmt.Sprint(b.Refused) || len(a.Scores) != len(b.Scores) {
		return false
	}
	for name, score := range a.Scores {
		if other, there := b.Scores[name]; !there || math.Abs(score-other) > 1e-9 {
			return false
		}
	}
	return true
}
