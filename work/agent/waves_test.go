package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
)

const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: NAME, namespace: NS}, spec: {template: {spec: ` +
	`{restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}`

// TestWaves checks a wave that waits until the one before is ready by a rule in CEL.
func TestWaves(t *testing.T) { testkit.Virtual(t, testWaves) }

func testWaves(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	spec := func(last string) string {
		return "{" + manifests(configMap("first", "{k: v}"), configMap("last", "{k: "+last+"}")) +
			`, waves: {waitForReadiness: true, timeoutSeconds: 1},
		manifestOptions: [{select: {name: first}, wave: 1, readiness: {cel: 'has(object.data.done)'}},
			{select: {name: last}, wave: 2}]}`
	}
	work := f.work("shop", spec("v"))
	f.awaitStatus(work, "0/2 Applied=False/Pending Available=False/NotApplied Progressing=True/Progressing "+
		"Degraded=True/Timeout\n"+
		"ConfigMap NS/last: Waiting for ConfigMap NS/first, which is not ready: the readiness rule is false: "+
		"has(object.data.done)\n"+
		"ConfigMap NS/first: Applied=True/Applied Available=False/Progressing\n"+
		"ConfigMap NS/last: Applied=False/Pending Available=False/NotApplied")
	require.Nil(t, f.read("ConfigMap", "last"))
	f.patch(f.read("ConfigMap", "first"), "data: {done: done}")
	f.ready(work)

	// Objects of a completed wave are healed regardless of the wave before.
	f.patch(f.read("ConfigMap", "first"), "data: {done: null}")
	f.Eventually("the Work is not available", func() error {
		require.NoError(t, f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work))
		return equal("False", string(condition(work, "Available").Status))
	})
	f.patch(f.read("ConfigMap", "last"), "data: {k: edited}")
	f.Eventually("ConfigMap last has k: v", func() error { return equal("v", f.data("last", "k")) })

	// A new generation waits again, and its timeout starts again.
	f.change(work, spec("w"))
	f.awaitStatus(work, "0/2 Applied=False/Pending Available=False/NotApplied Progressing=True/Progressing "+
		"Degraded=False/AsDesired\n"+
		"ConfigMap NS/last: Waiting for ConfigMap NS/first, which is not ready: the readiness rule is false: "+
		"has(object.data.done)\n"+
		"ConfigMap NS/first: Applied=True/Applied Available=False/Progressing\n"+
		"ConfigMap NS/last: Applied=False/Pending Available=False/NotApplied")
	f.Eventually("the wave has timed out", func() error {
		require.NoError(t, f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work))
		return equal("Timeout", condition(work, "Degraded").Reason)
	})
	require.Equal(t, "v", f.data("last", "k"))
	f.patch(f.read("ConfigMap", "first"), "data: {done: done}")
	f.ready(work)
	require.Equal(t, "w", f.data("last", "k"))
}

// TestSuspend checks that a suspended Work changes nothing, reports its differences, and is resumed.
func TestSuspend(t *testing.T) { testkit.Virtual(t, testSuspend) }

func testSuspend(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	work := f.work("shop", "{suspend: true, "+manifests(configMap("a", "{k: v}"))+"}")
	f.awaitStatus(work, "0/1 Applied=False/Suspended Available=False/NotApplied Progressing=False/Suspended "+
		"Degraded=False/AsDesired\n"+
		"Suspended: nothing is changed on the member. ConfigMap NS/a: The Work is suspended.\nConfigMap NS/a: "+
		"Applied=False/Suspended Available=False/NotApplied")
	require.Nil(t, f.read("ConfigMap", "a"))
	require.Nil(t, f.applied(work))
	f.change(work, "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	f.awaitNoRequests()

	f.change(work, "{suspend: true, "+manifests(configMap("a", "{k: w}"))+"}")
	f.awaitStatus(work,
		"1/1 Applied=False/Differs Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired\n"+
			"Suspended: nothing is changed on the member. ConfigMap NS/a: The object differs from the manifest: .data.k is "+
			"\"v\", expected \"w\".\n"+
			"ConfigMap NS/a: Applied=False/Differs Available=True/Ready\n  .data.k wanted \"w\" found \"v\"")
	f.patch(f.read("ConfigMap", "a"), "data: {k: w}")
	f.awaitStatus(work,
		"1/1 Applied=True/Applied Available=True/Ready Progressing=False/Suspended Degraded=False/AsDesired\n"+
			"Suspended: nothing is changed on the member. 1 object applied and ready.\nConfigMap NS/a: Applied=True/Observed "+
			"Available=True/Ready")
	_, member := f.awaitNoRequests()
	require.Empty(t, writes(member))
	require.NotNil(t, f.read("ConfigMap", "b"), "a suspended Work deletes no object that it no longer contains")
	f.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	f.ready(work)
	f.awaitObjects(work, "ConfigMap a w")

	f.change(work, "{suspend: true, "+manifests(configMap("a", "{k: w}"))+"}")
	f.delete(work)
	f.gone(work)
	require.Nil(t, f.read("ConfigMap", "a"), "a suspended Work is cleaned up when it is deleted")
}

// TestComplete checks that a Work completes with its Jobs.
func TestComplete(t *testing.T) {
	t.Parallel()
	f := newFixtureWithMember(t)
	f.start()
	named := func(name string) string { return replace(job, "NAME", name) }
	kept := f.work("kept", "{"+manifests(named("kept"), configMap("a", "{k: v}"))+"}")
	f.awaitStatus(kept,
		"2/2 Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired "+
			"Complete=True/Completed\n"+
			"2 objects applied and ready.\nbatch/Job NS/kept: Applied=True/Applied Available=True/Ready\nConfigMap NS/a: "+
			"Applied=True/Applied Available=True/Ready")
	expiring := f.work("going", "{"+manifests(named("going"))+", ttlSecondsAfterCompletion: 1}")
	f.gone(expiring)
	f.Eventually("Job going is deleted", func() error {
		if f.read("Job", "going") != nil {
			return fmt.Errorf("the Job still exists")
		}
		return nil
	})
	require.NotNil(t, f.read("Job", "kept"))
}
