// Command custom-plugin schedules placements on a small fleet with a custom scheduler plugin and the plugins of muster.
// It needs no cluster:
//
//	go run ./examples/custom-plugin
//
// Package carbon has the plugin. This file adds the plugin to a profile, and schedules a pending placement again when a
// hint says that an event may help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/examples/custom-plugin/carbon"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	"github.com/muster-sdk/muster/scheduler/queue"
)

const intensity = "carbon.example.com/intensity" // the property in the arguments of the plugin

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "custom-plugin:", err)
		os.Exit(1)
	}
}

// newScheduler adds the plugin to those of muster: its factory to the registry, and its name to a profile. README.md
// contains this function.
func newScheduler() (*scheduler.Scheduler, error) {
	registry, profile := plugins.Registry(), plugins.DefaultProfile()
	if err := registry.Register(carbon.Name, carbon.New); err != nil {
		return nil, err
	}
	profile.Plugins = append(profile.Plugins, scheduler.PluginConfig{
		Name: carbon.Name, Weight: 10,
		Args: scheduler.Args(`{"property": "carbon.example.com/intensity", "limit": 400}`),
	})
	return scheduler.New(scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{profile}})
}

// program has the state that a controller would keep: a cache of the fleet, and a queue of the pending placements.
type program struct {
	out       io.Writer
	scheduler *scheduler.Scheduler
	fleet     scheduler.Cache
	policies  map[string]*scheduler.Policy
	queue     *queue.Queue[string, scheduler.Event]
}

func run(ctx context.Context, out io.Writer) error {
	s, err := newScheduler()
	if err != nil {
		return err
	}
	p := &program{out: out, scheduler: s, policies: map[string]*scheduler.Policy{}}
	p.queue = queue.New(queue.Options[string, scheduler.Event]{
		Hint: func(plugin string, event scheduler.Event) func(string) bool {
			return func(name string) bool { return s.MayHelp(p.request(name), []string{plugin}, event) }
		},
		InitialBackoff: 10 * time.Millisecond, // short for the demonstration; the default is one second
	})

	fmt.Fprintln(out, "The fleet, by region and grams of CO2 per kWh:")
	for _, c := range [][3]string{
		{"north", "eu", "28"}, {"west", "eu", "56"}, {"south", "eu", "174"}, {"inland", "eu", "710"}, {"east", "ap", "662"},
		{"lab", "ap", "unknown"},
	} {
		p.change(c[0], c[1], c[2])
	}
	if err := p.place(ctx, "shop", "eu", 2); err != nil {
		return err
	}
	if err := p.place(ctx, "bank", "ap", 1); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nEast gets cleaner, but stays above the limit. No hint, so bank stays where it is:")
	p.change("east", "ap", "610")
	fmt.Fprintln(out, "  unschedulable:", p.queue.Stats().Unschedulable)
	fmt.Fprintln(out, "\nEast falls below the limit. The hint moves bank on, and it is decided again:")
	p.change("east", "ap", "290")
	fmt.Fprintln(out, "  unschedulable:", p.queue.Stats().Unschedulable)
	return p.decide(ctx)
}

func (p *program) request(name string) *scheduler.Request {
	return &scheduler.Request{Name: name, Policy: p.policies[name], Now: time.Now()}
}

// change updates the cache with a cluster, as an event of a watch would. The queue receives the event after the cache
// was updated, so that no decision misses it.
func (p *program) change(name, region, grams string) {
	p.queue.Event(p.fleet.Update(&scheduler.Cluster{
		Name: name, Joined: true, Healthy: true, Labels: map[string]string{"region": region},
		Properties: map[string]string{intensity: grams},
	}))
	fmt.Fprintf(p.out, "  %-6s  %s  %s\n", name, region, grams)
}

// place creates a placement with a number of clusters of a region.
func (p *program) place(ctx context.Context, name, region string, clusters int32) (err error) {
	p.policies[name], err = scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: &clusters,
		Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{
			{LabelSelector: metav1.SetAsLabelSelector(map[string]string{"region": region})},
		}},
	})
	if err != nil {
		return err
	}
	p.queue.Add(name, 0)
	return p.decide(ctx)
}

// decide processes one placement, as a worker does in a loop. Pop waits until a placement is queued and its backoff has
// ended.
func (p *program) decide(ctx context.Context) error {
	item, err := p.queue.Pop(ctx)
	if err != nil {
		return err
	}
	outcome := queue.Failed()
	defer func() { p.queue.Done(item.Key, outcome) }()
	// Pop is called before Snapshot, so that later events are not missed.
	result, err := p.scheduler.Schedule(ctx, p.fleet.Snapshot(), p.request(item.Key))
	if err != nil {
		return err
	}
	diagnosis, err := result.Diagnose(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\n%s: %s\n", item.Key, diagnosis)
	if outcome = queue.Scheduled(); result.Missing() > 0 {
		outcome = queue.Unschedulable(result.RejectedBy...)
		fmt.Fprintf(p.out, "It waits as unschedulable for a hint of %s.\n", strings.Join(result.RejectedBy, " or "))
	}
	fmt.Fprintln(p.out)
	return diagnosis.Table(p.out)
}
