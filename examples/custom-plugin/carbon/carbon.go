// Package carbon is a scheduler plugin that keeps placements to clusters with clean electricity, by a property that has
// the carbon intensity of the grid in grams of CO2 per kWh. Its arguments, both of which are required:
//
//	{"property": "carbon.example.com/intensity", "limit": 400}
//
// A cluster above the limit is rejected, and so is one with an unknown intensity. Of the others the cleanest gets
// [scheduler.MaxScore], the dirtiest 0, and the rest is in proportion.
package carbon

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is what the plugin is registered by.
const Name = "CarbonIntensity"

// Args are the plugin's arguments.
type Args struct {
	// Property has the intensity, as a quantity.
	Property string `json:"property"`
	// Limit is the greatest intensity that is accepted, above 0.
	Limit float64 `json:"limit"`
}

// New is the plugin's [scheduler.Factory].
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

// plugin is not a [scheduler.LocalPlugin]: a normalized score depends on the other clusters.
type plugin struct {
	Args
	unknown, tooMuch *scheduler.Status // made once, since Filter may be asked about thousands of clusters
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

// intensity is that of a cluster, or why the cluster is refused. A value that cannot be read is a reason against its
// cluster alone: an error would end the whole decision.
func (p *plugin) intensity(cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	value, known := cluster.Properties[p.Property]
	if !known {
		return 0, p.unknown
	}
	quantity, err := v1alpha1.ParseQuantity(value) // as the other plugins read properties
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

// Score is asked about those alone that Filter has accepted. It is negative so that less is better.
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

// Hint waits for a cluster that is accepted and was not before: it came, became cleaner, or can be read at last.
func (p *plugin) Hint(_ *scheduler.Request, event scheduler.Event) bool {
	return event.Became(p.accepts)
}

func (p *plugin) accepts(cluster *scheduler.Cluster) bool {
	_, refusal := p.intensity(cluster)
	return refusal == nil
}
