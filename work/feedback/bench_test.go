package feedback_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/jsonpath"

	"github.com/muster-sdk/muster/work/feedback"
)

// BenchmarkValue evaluates a path with a filter. The floor is client-go's evaluation.
func BenchmarkValue(b *testing.B) {
	const path = `{.status.hosts[?(@.name=="two")].port}`
	o, ours, theirs := object(b, shop), compiled(b, path), jsonpath.New("floor")
	require.NoError(b, theirs.Parse(path))
	for _, way := range []struct {
		name  string
		finds func() bool
	}{
		{"value", func() bool { _, ok, err := ours.Value(o); return ok && err == nil }},
		{"wellknown", func() bool { return feedback.WellKnown(o) == nil }},
		{"floor", func() bool { found, err := theirs.FindResults(o.Object); return err == nil && len(found) == 1 }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.True(b, way.finds())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/value")
		})
	}
}
