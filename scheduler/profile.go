package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// DefaultProfile is the name of the profile for policies without a profile name.
const DefaultProfile = "default"

// Profile defines which plugins decide, and their order.
type Profile struct {
	// Name is the name by which policies select the profile. Empty: [DefaultProfile].
	Name string `json:"name,omitempty"`
	// Plugins are called in this order. Each may occur once.
	Plugins []PluginConfig `json:"plugins"`
	// Timeout is the maximum duration of a decision. Zero: [DefaultTimeout].
	//
	// A plugin cannot be stopped: if it does not return, its goroutine continues, and the caller does not wait for it.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// DefaultTimeout is the default maximum duration of a decision. A normal decision takes much less than a millisecond.
const DefaultTimeout = 5 * time.Second

// PluginConfig is a plugin in a profile.
type PluginConfig struct {
	Name string `json:"name"`
	// Weight multiplies the scores of the plugin, from 1 to [MaxWeight]. Zero: 1. A policy can override it.
	Weight int32 `json:"weight,omitempty"`
	Args   Args  `json:"args,omitempty"`
}

// MaxWeight is the maximum weight of a plugin.
const MaxWeight = 100

// profile is a compiled Profile: its plugins by extension point.
type profile struct {
	name    string
	timeout time.Duration
	plugins []plugin
	// filters are the plugins with Filter, in the order of the calls. Batch filters are first, because they leave fewer
	// clusters for the others.
	filters   []*plugin
	scorers   []*plugin
	selecters []*plugin
	reserves  bool // at least one plugin is a ReservePlugin
}

// plugin is a plugin with the extension points that it implements. Nil: the plugin does not implement the point.
type plugin struct {
	Plugin
	index   int
	filter  filterPoints
	score   scorePoints
	selects SelectPlugin
	reserve ReservePlugin
	hint    HintPlugin
	local   LocalPlugin
	places  [points]place
}

// filterPoints are the extension points that decide which clusters are feasible. Nil: not implemented.
type filterPoints struct {
	pre    PreFilterPlugin
	each   FilterPlugin
	all    BatchFilterPlugin
	post   PostFilterPlugin
	strict StrictPlugin
}

// filterPointsOf returns the filter extension points that a plugin implements.
func filterPointsOf(instance Plugin) (points filterPoints) {
	points.pre, _ = instance.(PreFilterPlugin)
	points.each, _ = instance.(FilterPlugin)
	points.all, _ = instance.(BatchFilterPlugin)
	points.post, _ = instance.(PostFilterPlugin)
	points.strict, _ = instance.(StrictPlugin)
	return points
}

// isStrict reports whether the plugin may reject clusters that have not reported.
func (f *filterPoints) isStrict(request *Request) bool {
	return f.strict != nil && f.strict.Strict(request)
}

// scorePoints are the extension points that score feasible clusters. Nil: not implemented.
type scorePoints struct {
	weight    float64 // of the scores; a policy can override it
	pre       PreScorePlugin
	each      ScorePlugin
	all       BatchScorePlugin
	normalize NormalizeScorePlugin
}

// scorePointsOf returns the score extension points that a plugin implements.
func scorePointsOf(instance Plugin, weight float64) scorePoints {
	points := scorePoints{weight: weight}
	points.pre, _ = instance.(PreScorePlugin)
	points.each, _ = instance.(ScorePlugin)
	points.all, _ = instance.(BatchScorePlugin)
	points.normalize, _ = instance.(NormalizeScorePlugin)
	return points
}

// place is an extension point of a plugin.
type place struct {
	plugin string
	point  point
}

type point int

const (
	atPreFilter point = iota
	atFilter
	atPostFilter
	atPreScore
	atScore
	atNormalizeScore
	atSelect
	atReserve
	points
)

func (p point) String() string {
	return [...]string{"PreFilter", "Filter", "PostFilter", "PreScore", "Score", "NormalizeScore", "Select", "Reserve"}[p]
}

// newProfile creates the plugins of a profile. The error contains all problems.
func newProfile(config Profile, registry Registry, log logr.Logger) (*profile, error) {
	p := &profile{name: config.Name, timeout: config.Timeout, plugins: make([]plugin, len(config.Plugins))}
	if p.name == "" {
		p.name = DefaultProfile
	}
	if p.timeout == 0 {
		p.timeout = DefaultTimeout
	}
	var problems []error
	if p.timeout < 0 {
		problems = append(problems, fmt.Errorf("timeout: %s is negative", p.timeout))
	}
	seen := map[string]bool{}
	for i, c := range config.Plugins {
		made, err := newPlugin(c, registry, Handle{Profile: p.name, Log: log.WithName(c.Name)})
		if err == nil && seen[c.Name] {
			err = errors.New("the profile contains the plugin more than once")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("plugins[%d] (%s): %w", i, c.Name, err))
			continue
		}
		seen[c.Name] = true
		made.index = i
		p.plugins[i] = *made
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	for i := range p.plugins {
		plugin := &p.plugins[i]
		if plugin.filter.each != nil {
			p.filters = append(p.filters, plugin)
		}
		if plugin.score.each != nil {
			p.scorers = append(p.scorers, plugin)
		}
		if plugin.selects != nil {
			p.selecters = append(p.selecters, plugin)
		}
		p.reserves = p.reserves || plugin.reserve != nil
	}
	slices.SortStableFunc(p.filters, func(a, b *plugin) int {
		switch {
		case (a.filter.all != nil) == (b.filter.all != nil):
			return 0
		case a.filter.all != nil:
			return -1
		default:
			return 1
		}
	})
	return p, nil
}

func newPlugin(config PluginConfig, registry Registry, handle Handle) (made *plugin, err error) {
	factory, known := registry[config.Name]
	if !known {
		return nil, errors.New("no plugin with this name is registered")
	}
	weight := config.Weight
	if weight == 0 {
		weight = 1
	}
	if weight < 1 || weight > MaxWeight {
		return nil, fmt.Errorf("weight: %d is not from 1 to %d", weight, MaxWeight)
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			made, err = nil, fmt.Errorf("the factory of the plugin panicked: %v", panicked)
		}
	}()
	instance, err := factory(config.Args, handle)
	switch {
	case err != nil:
		return nil, fmt.Errorf("args: %w", err)
	case instance == nil:
		return nil, errors.New("the factory of the plugin returned nil")
	case instance.Name() != config.Name:
		return nil, fmt.Errorf("the factory returned a plugin with the name %q", instance.Name())
	}
	made = &plugin{Plugin: instance, filter: filterPointsOf(instance), score: scorePointsOf(instance, float64(weight))}
	made.selects, _ = instance.(SelectPlugin)
	made.reserve, _ = instance.(ReservePlugin)
	made.hint, _ = instance.(HintPlugin)
	made.local, _ = instance.(LocalPlugin)
	for point := range points {
		made.places[point] = place{config.Name, point}
	}
	return made, nil
}

// rejectedBy returns the names of the plugins with a count above 0. The counts are indexed by plugin.
func (p *profile) rejectedBy(counts []int32) []string {
	var names []string
	for i, count := range counts {
		if count > 0 {
			names = append(names, p.plugins[i].Name())
		}
	}
	return names
}

// weights returns the weights of the scorers for a policy: those of the profile, unless the policy overrides them.
func (p *profile) weights(policy *Policy) ([]float64, error) {
	return Compiled(policy, p, func(spec *v1alpha1.PlacementPolicy) ([]float64, error) {
		weights := make([]float64, len(p.scorers))
		for i, scorer := range p.scorers {
			weights[i] = scorer.score.weight
		}
		for i, prioritizer := range spec.Prioritizers {
			at := slices.IndexFunc(p.scorers, func(s *plugin) bool { return s.Name() == prioritizer.Plugin })
			if at < 0 {
				return nil, fmt.Errorf("policy.prioritizers[%d].plugin: profile %s has no scoring plugin %s", i, p.name,
					prioritizer.Plugin)
			}
			weights[at] = float64(prioritizer.Weight)
		}
		return weights, nil
	})
}
