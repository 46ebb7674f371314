// Package carbon is a scheduler plugin that prefers clusters with clean electricity. It reads a property with the
// carbon intensity of the grid in grams of CO2 per kWh. Both of its arguments are required:
//
//	{"property": "carbon.example.com/intensity", "limit": 400}
//
// The plugin rejects a cluster above the limit, and a cluster with an unknown intensity. Of the other clusters, the
// cleanest gets [scheduler.MaxScore] and the dirtiest 0. The scores between them are proportional.
package carbon

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "CarbonIntensity"

// Args are the plugin's arguments.
type Args struct {
	// Property is the name of the property with the intensity, which is a quantity.
	Property string `json:"property"`
	// Limit is the maximum accepted intensity. It must be above 0.
	Limit float64 `json:"limit"`
}

// New returns the plugin. It is a [scheduler.Factory].
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	var a Args
	if err := scheduler.DecodeArgs(args, &a); err != nil {
		return nil, err
	}
	switch {
	case a.Property == "":
		return nil, errors.New("property: must not be empty")
	case a.Limit <= 0:
		return nil, fmt.Errorf("limit: %v is not above 0", a.Limit)
	}
	return &plugin{
		Args:    a,
		unknown: scheduler.Rejectf("has no property %s", a.Property),
		tooMuch: scheduler.Rejectf("exceeds %v g of CO2 per kWh", a.Limit),
	}, nil
}

// plugin does not implement [scheduler.LocalPlugin], because a normalized score depends on the other clusters.
type plugin struct {
	Args
	unknown, tooMuch *scheduler.Status // created once, because Filter may be called for thousands of clusters
}

var (
	_ scheduler.FilterPlugin         = &plugin{}
	_ scheduler.NormalizeScorePlugin = &plugin{}
	_ scheduler.HintPlugin           = &plugin{}
)

func (p *plugin) Name() string { return Name }

func (p *plugin) Filter(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	_, refusal := p.intensity(cluster)
	return refusal
}

// intensity returns the intensity of a cluster, or a status that rejects the cluster. An invalid value rejects only its
// cluster, because an error would end the whole decision.
func (p *plugin) intensity(cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	value, known := cluster.Properties[p.Property]
	if !known {
		return 0, p.unknown
	}
	quantity, err := v1alpha1.ParseQuantity(value) // as the other plugins parse properties
	if err != nil {
		return 0, scheduler.Rejectf("has property %s with value %q, which is no quantity", p.Property, value)
	}
	grams := quantity.AsApproximateFloat64()
	switch {
	case grams < 0:
		return 0, scheduler.Rejectf("has property %s with value %q, which is negative", p.Property, value)
	case grams > p.Limit:
		return 0, p.tooMuch
	}
	return grams, nil
}

// Score is called only for clusters that Filter has accepted. The score is negative, because a lower intensity is
// better.
func (p *plugin) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	grams, _ := p.intensity(cluster)
	return -grams, nil
}

func (p *plugin) NormalizeScore(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	feasible scheduler.Set, scores []float64) *scheduler.Status {
	scheduler.Normalize(feasible, scores)
	return nil
}

// Hint returns true if the plugin now accepts a cluster that it did not accept before: the cluster is new, became
// cleaner, or has a valid value now.
func (p *plugin) Hint(_ *scheduler.Request, event scheduler.Event) bool {
	return event.Became(p.accepts)
}

func (p *plugin) accepts(cluster *scheduler.Cluster) bool {
	_, refusal := p.intensity(cluster)
	return refusal == nil
}
