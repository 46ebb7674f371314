package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestSpans runs a hub and checks that the decision of a Placement has a span with the requests that it caused, and
// that no span contains a value of an object.
func TestSpans(t *testing.T) {
	plane := localplane.ForTest(t, localplane.Options{Name: "tracing"})
	sampled = 1
	exporter := tracetest.NewInMemoryExporter()
	end := export(exporter)
	config := rest.CopyConfig(plane.Config())
	config.Wrap(requests)
	hub := fleet.StartHub(t, plane.Config(), fleet.HubOptions{Config: config})

	const value = "a-value-of-an-object"
	placement := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web",
		Annotations: map[string]string{"example.com/note": value}}}
	require.NoError(t, hub.Client().Create(t.Context(), placement))
	var spans tracetest.SpanStubs
	mustertest.Eventually(t, time.Minute, "the decision has a span with a request", func() error {
		spans = exporter.GetSpans()
		i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool {
			return s.Name == "muster-placement" && strings.Contains(fmt.Sprint(s.Attributes), "web")
		})
		if i < 0 {
			return fmt.Errorf("%d spans, and none of the Placement", len(spans))
		}
		if !slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool {
			return s.Parent.SpanID() == spans[i].SpanContext.SpanID() && strings.HasPrefix(s.Name, "HTTP ")
		}) {
			return fmt.Errorf("the span of the Placement has no request: %v", spans)
		}
		return nil
	})
	hub.Stop()
	require.NoError(t, end())
	for _, s := range spans {
		require.NotContains(t, fmt.Sprint(s), value)
	}
}
