package push_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var benchMembers = flag.Int("members", 20, "how many push members BenchmarkBlackHoles has; every fifth becomes "+
	"a black hole")

// BenchmarkBlackHoles runs the agents of many members in one hub, and measures the time from the creation of a Work
// until the hub has observed that it is applied: while all members respond, which is the floor, and while every fifth
// member accepts requests and never responds.
func BenchmarkBlackHoles(b *testing.B) {
	h := newHub(b)
	hole, err := localplane.NewProxy(plane.ForTest(b).Config().Host)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, hole.Close()) })
	var good, holes []string
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for i := range testkit.Size(*benchMembers) {
		name, config := fmt.Sprintf("bench-%03d", i), rest.CopyConfig(h.memberConfig)
		if i%5 == 0 {
			config = hole.Config(plane.ForTest(b).Config())
			holes = append(holes, name)
		} else {
			good = append(good, name)
		}
		config.Wrap(named(name))
		cluster := h.newMember(name,
			func(s *v1alpha1.MemberClusterSpec) { s.Accepted, s.HeartbeatPeriodSeconds = new(true), 10 })
		running.Go(func() {
			for ctx.Err() == nil {
				_ = h.runner.Run(ctx, fleet.Connected{Cluster: cluster, Config: config}) // the fleet also calls it again
			}
		})
	}
	for _, name := range slices.Concat(good, holes) {
		h.waitForPhase(name, v1alpha1.PhaseJoined)
	}

	var before, beside time.Duration
	rounds := 0
	round := func() (took time.Duration) {
		rounds++
		for _, name := range good {
			took += h.roundTrip(name, fmt.Sprintf("%s-%d", name, rounds))
		}
		return took
	}
	round() // warm-up
	for b.Loop() {
		before += round()
		hole.Stall()
		for _, name := range holes {
			h.waitForHealthy(name, metav1.ConditionFalse)
		}
		beside += round()
		hole.Heal()
		for _, name := range holes {
			h.waitForHealthy(name, metav1.ConditionTrue)
		}
	}
	perWork := float64(b.N*len(good)) * float64(time.Millisecond)
	b.ReportMetric(float64(before)/perWork, "ms/work")
	b.ReportMetric(float64(beside)/perWork, "beside-holes-ms/work")
	b.ReportMetric(float64(beside)/float64(before), "x-floor")
	b.ReportMetric(0, "ns/op")

	for _, name := range slices.Concat(good, holes) {
		require.NoError(b,
			h.Client.Delete(context.Background(), &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	h.waitUntilClean()
}

// roundTrip returns the time until the hub has observed that a new Work of a member is applied.
func (h *testHub) roundTrip(member, name string) time.Duration {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := client.NewWithWatch(plane.ForTest(h.T).Config(), client.Options{Scheme: scheme})
	require.NoError(h.T, err)
	watcher, err := c.Watch(ctx, &workv1alpha1.WorkList{}, client.InNamespace("member-"+member),
		client.MatchingFields{"metadata.name": name})
	require.NoError(h.T, err)
	defer watcher.Stop()
	began := time.Now()
	h.send(member, name)
	for event := range watcher.ResultChan() {
		if work, is := event.Object.(*workv1alpha1.Work); is &&
			meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.ConditionApplied) {
			return time.Since(began)
		}
	}
	h.T.Fatalf("Work %s of %s was not applied within %s", name, member, timeout)
	return 0
}

// named makes members that share one cluster report different cluster IDs.
func named(name string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err != nil || request.Method != http.MethodGet ||
				request.URL.Path != "/api/v1/namespaces/"+metav1.NamespaceSystem {
				return response, err
			}
			_ = response.Body.Close()
			body, err := json.Marshal(&corev1.Namespace{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
				ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("cluster-of-" + name)},
			})
			if err != nil {
				return nil, err
			}
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			response.Header.Set("Content-Type", runtime.ContentTypeJSON)
			response.Header.Del("Content-Length")
			return response, nil
		})
	}
}
