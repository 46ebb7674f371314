package resourcefit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "ResourceFit"

// New creates the plugin. It is a [scheduler.Factory] with the arguments [Args].
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	p := &plugin{}
	if err := scheduler.DecodeArgs(args, &p.args); err != nil {
		return nil, err
	}
	return p, p.args.validate()
}

type plugin struct{ args Args }

var (
	_ scheduler.PreFilterPlugin   = &plugin{}
	_ scheduler.BatchFilterPlugin = &plugin{}
	_ scheduler.PreScorePlugin    = &plugin{}
	_ scheduler.BatchScorePlugin  = &plugin{}
	_ scheduler.HintPlugin        = &plugin{}
)

func (p *plugin) Name() string { return Name }

// demand is the compiled resource request of a policy.
type demand struct {
	resources []resourceDemand // by name
	scored    []scored
	weights   float64
}

type resourceDemand struct {
	name     corev1.ResourceName
	quantity resource.Quantity
	tooFew   *scheduler.Status
	enough   string // key of the set of clusters with at least the quantity
}

type scored struct {
	name    corev1.ResourceName
	asked   float64
	weight  float64
	columns string
}

func (p *plugin) demand(r *scheduler.Request) *demand {
	d, _ := scheduler.Compiled(r.Policy, p, func(spec *v1alpha1.PlacementPolicy) (*demand, error) {
		d := &demand{}
		for _, name := range slices.Sorted(maps.Keys(spec.Resources)) {
			quantity := spec.Resources[name]
			if quantity.IsZero() {
				continue
			}
			d.resources = append(d.resources, resourceDemand{
				name: name, quantity: quantity,
				tooFew: scheduler.Rejectf("has less than %s of %s available", quantity.String(), name),
				enough: fmt.Sprintf("resourcefit:%s>=%s", name, quantity.String()),
			})
		}
		resources := p.args.Resources
		if len(resources) == 0 {
			for _, r := range d.resources {
				resources = append(resources, Resource{Name: r.name, Weight: 1})
			}
		}
		for _, r := range resources {
			asked := spec.Resources[r.Name]
			d.scored = append(d.scored, scored{r.Name, asked.AsApproximateFloat64(), float64(r.Weight), "resourcefit:" +
				string(r.Name)})
			d.weights += float64(r.Weight)
		}
		return d, nil
	})
	return d
}

func (p *plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request) *scheduler.Status {
	if len(p.demand(request).resources) == 0 {
		return scheduler.NothingToDo()
	}
	return nil
}

// Filter rejects clusters with too few available resources. It accepts the clusters that the placement runs on, because
// the placement already uses the resources there.
func (p *plugin) Filter(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	if slot, there := state.Snapshot().Slot(cluster.Name); there && state.Placed().Has(slot) {
		return nil
	}
	for _, r := range p.demand(request).resources {
		if !r.fits(cluster) {
			return r.tooFew
		}
	}
	return nil
}

func (r *resourceDemand) fits(cluster *scheduler.Cluster) bool {
	available := cluster.Available[r.name]
	return available.Cmp(r.quantity) >= 0
}

func (p *plugin) FilterAll(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	placed := state.Placed().Clone()
	placed.Retain(feasible)
	for _, r := range p.demand(request).resources {
		feasible.Retain(state.Snapshot().Where(r.enough, r.fits))
	}
	feasible.Insert(placed)
	return nil
}

func (p *plugin) PreScore(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request,
	_ scheduler.Set) *scheduler.Status {
	if len(p.demand(request).resources) == 0 {
		return scheduler.NothingToDo()
	}
	return nil
}

func (p *plugin) Score(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	d := p.demand(request)
	slot, there := state.Snapshot().Slot(cluster.Name)
	placed := there && state.Placed().Has(slot)
	sum := 0.0
	for _, r := range d.scored {
		sum += p.score(r, usageOf(cluster, r.name), placed)
	}
	return sum / d.weights, nil
}

// usage contains the quantities of one resource of a cluster.
type usage struct{ allocatable, available float64 }

func usageOf(cluster *scheduler.Cluster, name corev1.ResourceName) usage {
	allocatable, available := cluster.Allocatable[name], cluster.Available[name]
	return usage{allocatable.AsApproximateFloat64(), available.AsApproximateFloat64()}
}

// score returns the score of one resource multiplied by its weight. The caller divides by the sum of the weights.
func (p *plugin) score(r scored, u usage, placed bool) float64 {
	left := u.available
	if !placed {
		left -= r.asked
	}
	free := 0.0
	if u.allocatable > 0 {
		free = max(0, min(left/u.allocatable, 1))
	}
	if p.args.Strategy == MostAllocated {
		free = 1 - free
	}
	return free * scheduler.MaxScore * r.weight
}

func (p *plugin) ScoreAll(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set, scores []float64) *scheduler.Status {
	d := p.demand(request)
	for _, r := range d.scored {
		usages := scheduler.Column(state.Snapshot(), r.columns, func(c *scheduler.Cluster) usage {
			return usageOf(c, r.name)
		})
		for slot := range feasible.All() {
			scores[slot] += p.score(r, usages[slot], state.Placed().Has(slot))
		}
	}
	for slot := range feasible.All() {
		scores[slot] /= d.weights
	}
	return nil
}

// Local returns true.
func (p *plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }

// Hint reports whether the cluster has sufficient resources and did not before.
func (p *plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	return event.Became(p.demand(request).fits)
}

func (d *demand) fits(cluster *scheduler.Cluster) bool {
	return !slices.ContainsFunc(d.resources, func(r resourceDemand) bool { return !r.fits(cluster) })
}
