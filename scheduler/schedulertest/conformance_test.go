package schedulertest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

// zone is a plugin that accepts one zone. Each of its faults is a typical error of plugins.
type zone struct{ fault string }

func (z *zone) Name() string { return "Zone" }

var otherZone = scheduler.Reject("is in another zone")

func (z *zone) Filter(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	c *scheduler.Cluster) *scheduler.Status {
	// Only once, so that concurrent calls do not write the map.
	if z.fault == "changes clusters" && c.Labels["seen"] == "" {
		c.Labels["seen"] = "yes"
	}
	if z.fault == "depends on slots" {
		if slot, _ := state.Snapshot().Slot(c.Name); slot == 0 {
			return nil
		}
	}
	if c.Labels["zone"] == "a" {
		return nil
	}
	if z.fault == "reason without a verb" {
		return scheduler.Reject("another zone")
	}
	return otherZone
}

func (z *zone) FilterAll(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	if z.fault == "batch differs" {
		feasible.Retain(state.Snapshot().Label("zone").Set("b"))
		return nil
	}
	if z.fault == "adds clusters" {
		feasible.Clear()
		feasible.Insert(state.Snapshot().All())
		feasible.Add(state.Snapshot().Slots()) // the first slot beyond the snapshot, in the last word
		return nil
	}
	snapshot := state.Snapshot()
	if z.fault == "depends on slots" {
		for slot := range feasible.All() {
			if slot > 0 && snapshot.Cluster(slot).Labels["zone"] != "a" {
				feasible.Remove(slot)
			}
		}
		return nil
	}
	feasible.Retain(snapshot.Where("zone:a", func(c *scheduler.Cluster) bool { return c.Labels["zone"] == "a" }))
	return nil
}

func (z *zone) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	c *scheduler.Cluster) (float64, *scheduler.Status) {
	if z.fault == "score too high" {
		return 101, nil
	}
	return float64(len(c.Labels)), nil
}

func (z *zone) Hint(_ *scheduler.Request, event scheduler.Event) bool {
	switch z.fault {
	case "no hint for additions":
		return event.Old != nil
	case "no hint for changes":
		return event.Old == nil
	}
	return true
}

var zones = []*scheduler.Cluster{
	schedulertest.Cluster("two", schedulertest.Label("zone", "b"), schedulertest.Label("tier", "1")),
	schedulertest.Cluster("one", schedulertest.Label("zone", "a")),
	schedulertest.Cluster("three", schedulertest.Label("zone", "a"), schedulertest.Label("tier", "2")),
}

// faultVariable is set in subprocesses that show how [schedulertest.Conformance] reports a fault.
const faultVariable = "MUSTER_TEST_FAULT"

func TestZone(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: "Zone", Clusters: zones,
		Factory: func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) {
			return &zone{fault: os.Getenv(faultVariable)}, nil
		},
	})
}

func TestConformance_ReportsFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"batch differs":         "TestZone/batch_forms_agree",
		"changes clusters":      "TestZone/nothing_is_changed",
		"depends on slots":      "TestZone/order_does_not_matter",
		"reason without a verb": `reason "another zone" does not begin with a verb`,
		"no hint for changes":   "TestZone/hints_are_complete",
		"no hint for additions": "no hint although cluster one was added",
		"adds clusters":         "FilterAll has put clusters in",
		"score too high":        "the score of one is 101",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestZone$")
			command.Env = append(os.Environ(), faultVariable+"="+fault)
			output, err := command.CombinedOutput()
			require.Error(t, err, "Conformance did not report the fault:\n%s", output)
			require.Contains(t, string(output), want)
		})
	}
}

func ExampleCluster() {
	snapshot := schedulertest.Snapshot(
		schedulertest.Cluster("east", schedulertest.Label("region", "eu"), schedulertest.Resource("cpu", "64", "12500m")),
		schedulertest.Cluster("west", schedulertest.Label("region", "us")),
	)
	var names []string
	for slot := range snapshot.Label("region").Set("eu").All() {
		names = append(names, snapshot.Cluster(slot).Name)
	}
	fmt.Println(strings.Join(names, ", "))
	// Output: east
}
