package externalscore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "ExternalScore"

// Args are the plugin's arguments.
type Args struct {
	// Scores are the scores that are used. At least one is required.
	Scores []Score `json:"scores"`
}

// Score is an external score and its weight.
type Score struct {
	// Name is the name of the score in [scheduler.Cluster].Scores.
	Name string `json:"name"`
	// Weight is the relative weight of the score, from 1 to 100. Zero: 1.
	Weight int32 `json:"weight,omitempty"`
}

// greatest is the maximum of an external score. The minimum is -greatest.
const greatest = 100

// New creates the plugin. It is a [scheduler.Factory] with the arguments [Args].
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	var a Args
	if err := scheduler.DecodeArgs(args, &a); err != nil {
		return nil, err
	}
	if len(a.Scores) == 0 {
		return nil, errors.New("scores: must have at least one score")
	}
	p := &plugin{scores: a.Scores}
	names := make([]string, len(a.Scores))
	for i := range p.scores {
		score := &p.scores[i]
		if score.Weight == 0 {
			score.Weight = 1
		}
		switch {
		case score.Name == "":
			return nil, fmt.Errorf("scores[%d].name: must not be empty", i)
		case score.Weight < 1 || score.Weight > scheduler.MaxWeight:
			return nil, fmt.Errorf("scores[%d].weight: %d is not from 1 to %d", i, score.Weight, scheduler.MaxWeight)
		}
		p.weights += float64(score.Weight)
		names[i] = fmt.Sprintf("%q*%d", score.Name, score.Weight)
	}
	p.column = "externalscore:" + strings.Join(names, "+")
	return p, nil
}

type plugin struct {
	scores  []Score
	weights float64
	column  string
}

var _ scheduler.BatchScorePlugin = &plugin{}

func (p *plugin) Name() string { return Name }

func (p *plugin) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	return p.score(cluster), nil
}

func (p *plugin) score(cluster *scheduler.Cluster) float64 {
	sum := 0.0
	for _, score := range p.scores {
		if value := cluster.Scores[score.Name]; value >= -greatest && value <= greatest { // false for NaN, too
			sum += float64(score.Weight) * value
		}
	}
	return (sum/p.weights + greatest) / (2 * greatest) * scheduler.MaxScore
}

func (p *plugin) ScoreAll(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request, feasible scheduler.Set,
	scores []float64) *scheduler.Status {
	all := scheduler.Column(state.Snapshot(), p.column, p.score)
	for slot := range feasible.All() {
		scores[slot] = all[slot]
	}
	return nil
}

// Local returns true.
func (p *plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }
