package apiavailability

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "APIAvailability"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.PreFilterPlugin   = plugin{}
	_ scheduler.BatchFilterPlugin = plugin{}
	_ scheduler.HintPlugin        = plugin{}
)

// api is a required kind.
type api struct {
	kind     schema.GroupVersionKind
	key      string
	rejected *scheduler.Status
}

func (a *api) servedBy(cluster *scheduler.Cluster) bool {
	return cluster.APIs == nil || cluster.APIs[a.kind]
}

func compiled(request *scheduler.Request) []api {
	apis, _ := scheduler.Compiled(request.Policy, plugin{}, func(spec *v1alpha1.PlacementPolicy) ([]api, error) {
		apis := make([]api, len(spec.RequiredAPIs))
		for i, required := range spec.RequiredAPIs {
			kind := schema.GroupVersionKind(required)
			name := kind.GroupVersion().String() + " " + kind.Kind
			apis[i] = api{kind: kind, key: "api:" + name, rejected: scheduler.Reject("does not serve " + name)}
		}
		return apis, nil
	})
	return apis
}

func (plugin) Name() string { return Name }

func (plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request) *scheduler.Status {
	if len(compiled(request)) == 0 {
		return scheduler.NothingToDo()
	}
	return nil
}

// Filter rejects a cluster that does not serve a required kind. Bound clusters stay: if a kind is not served, its
// definition may be about to be replaced.
func (plugin) Filter(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	if slot, there := state.Snapshot().Slot(cluster.Name); there && state.Bound().Has(slot) {
		return nil
	}
	apis := compiled(request)
	for i := range apis {
		if !apis[i].servedBy(cluster) {
			return apis[i].rejected
		}
	}
	return nil
}

func (plugin) FilterAll(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	bound := state.Bound().Clone()
	bound.Retain(feasible)
	apis := compiled(request)
	for i := range apis {
		feasible.Retain(state.Snapshot().Where(apis[i].key, apis[i].servedBy))
	}
	feasible.Insert(bound)
	return nil
}

// Hint reports whether the cluster serves all required kinds and did not before.
func (plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	return event.Became(func(c *scheduler.Cluster) bool { return serves(c, request) })
}

func serves(cluster *scheduler.Cluster, request *scheduler.Request) bool {
	apis := compiled(request)
	for i := range apis {
		if !apis[i].servedBy(cluster) {
			return false
		}
	}
	return true
}

// Local returns true.
func (plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }
