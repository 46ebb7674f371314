package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/agent"
)

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}, spec: {replicas: 2,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
    spec: {containers: [{name: web, image: nginx}]}}}}`

// awaitNoRequests waits until there was no request for a while, and returns the requests until then.
func (f *fixture) awaitNoRequests() (hub, member []string) {
	f.T.Helper()
	const window = 500 * time.Millisecond
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		<-time.After(window)
		h, m := f.toHub.take(), f.toMember.take()
		if len(h)+len(m) == 0 {
			return hub, member
		}
		hub, member = append(hub, h...), append(member, m...)
	}
	f.T.Fatalf("the requests do not end: hub %v, member %v", hub, member)
	return nil, nil
}

// TestRequests checks the number of requests that a Work costs.
func TestRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(f.member, configMap("theirs", "{k: v}"))
	stop := f.start(func(o *agent.Options) { o.Resync = 100 * time.Millisecond })
	spec := func(value string) string {
		return "{" + manifests(configMap("a", "{k: "+value+"}"), secret("s"), deployment, configMap("theirs", "{k: v}")) +
			", manifestOptions: [{select: {name: theirs}, mode: Observe}, {select: {kind: Deployment}, feedbackWellKnown: " +
			"true}]}"
	}
	work := f.work("shop", spec("v"))
	f.ready(work)
	hub, member := f.awaitNoRequests()
	t.Logf("first apply: hub %v, member %v", hub, member)
	require.Equal(t, 1, count(member, "POST appliedworks"))
	require.Equal(t, 1, count(member, "PUT appliedworks"))
	require.Equal(t, 1, count(member, "PATCH configmaps a"))
	require.Equal(t, 1, count(member, "PATCH deployments web"))
	require.Equal(t, 1, count(hub, "PATCH works shop")-count(hub, "PATCH works shop status"), "the finalizer")

	t.Run("no change during many resyncs", func(t *testing.T) {
		<-time.After(2 * time.Second)
		require.Empty(t, f.toHub.take())
		require.Empty(t, f.toMember.take())
	})
	t.Run("one field changes", func(t *testing.T) {
		f.change(work, spec("w"))
		f.ready(work)
		hub, member := f.awaitNoRequests()
		require.Equal(t, []string{"PATCH configmaps a"}, member, "one write, and no read of unchanged objects")
		require.Equal(t, []string{"PATCH works shop status"}, hub)
	})
	t.Run("a Deployment changes", func(t *testing.T) {
		f.change(work, strings.Replace(spec("w"), "nginx", "nginx:2", 1))
		f.ready(work)
		hub, member := f.awaitNoRequests()
		t.Logf("hub %v, member %v", hub, member)
		require.Equal(t, []string{"PATCH deployments web"}, writes(member))
		require.Empty(t, slices.DeleteFunc(member[1:], func(r string) bool { return r == "GET deployments web" }),
			"the Deployment is read when its status changes")
		require.LessOrEqual(t, len(writes(hub)), 8)
	})
	t.Run("a restart", func(t *testing.T) {
		stop()
		f.awaitNoRequests()
		f.start(func(o *agent.Options) { o.Resync = 100 * time.Millisecond })
		f.Eventually("the agent has reconciled", func() error {
			f.toMember.mu.Lock()
			defer f.toMember.mu.Unlock()
			if !slices.Contains(f.toMember.requests, "GET deployments web") {
				return fmt.Errorf("the agent has not reconciled yet: %v", f.toMember.requests)
			}
			return nil
		})
		hub, member := f.awaitNoRequests()
		require.Empty(t, hub)
		slices.Sort(member)
		require.Equal(t, []string{"GET deployments web"}, member, "the status of the Deployment determines its readiness")
	})
}

func count(requests []string, prefix string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}
