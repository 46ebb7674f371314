package readiness_test

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/readiness"
)

// BenchmarkAssess evaluates a Deployment that has been rolled out. The floor is kstatus alone.
func BenchmarkAssess(b *testing.B) {
	o := object(b, `apps/v1 Deployment
metadata: {name: web, namespace: shop, generation: 1}
spec: {replicas: 2, progressDeadlineSeconds: 600, template: {spec: {containers: [{name: web, image: "web:1"}]}}}
status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2,
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`)
	rule := compiled(b, `object.status.conditions.exists(c, c.type == "Available" && c.status == "True")`)
	for _, test := range []struct {
		name  string
		ready func() bool
	}{
		{"defaults", func() bool { return readiness.Registry(nil).Assess(o).Status == readiness.Ready }},
		{"rule", func() bool { return rule.Assess(o).Status == readiness.Ready }},
		{"floor", func() bool {
			result, err := status.Compute(o)
			return err == nil && result.Status == status.CurrentStatus
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.True(b, test.ready())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/object")
		})
	}
}
