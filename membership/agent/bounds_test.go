package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestReport_ResourcesBeyondTheLimit checks that at most 128 resources are reported, including CPU and memory, and
// that the condition PropertiesCollected contains the number of omitted resources.
func TestReport_ResourcesBeyondTheLimit(t *testing.T) {
	usage := func(extended int) *v1alpha1.ResourceUsage {
		all := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		for i := range extended {
			all[corev1.ResourceName(fmt.Sprintf("a.example.com/r%03d", i))] = resource.MustParse("1")
		}
		return &v1alpha1.ResourceUsage{Capacity: all, Allocatable: all.DeepCopy(), Available: corev1.ResourceList{
			"cpu": resource.MustParse("500m"), "a.example.com/r000": resource.MustParse("1"),
			"a.example.com/r130": resource.MustParse("1"),
		}}
	}
	full := usage(126)
	kept, omitted := boundedResources(full)
	require.Same(t, full, kept)
	require.Zero(t, omitted)

	c := collection{sources: []*source{{name: sourceResources, known: true, found: finding{resources: usage(131)}}}}
	facts := c.facts()
	require.Len(t, facts.resources.Capacity, 128)
	require.Len(t, facts.resources.Allocatable, 128)
	require.Contains(t, facts.resources.Capacity, corev1.ResourceCPU)
	require.Contains(t, facts.resources.Capacity, corev1.ResourceMemory)
	require.NotContains(t, facts.resources.Capacity, corev1.ResourceName("a.example.com/r126"))
	require.Len(t, facts.resources.Available, 2)
	require.Equal(t, v1alpha1.ReasonTruncated, facts.problems.condition().Reason)
	require.Equal(t, "An agent reports at most 128 resources; the last 5 in order of their names are omitted.",
		facts.problems.condition().Message)
}

// TestReport_RemainingBeyondTheLimit checks that the remaining objects are reported within the limits, and that the
// last entry contains the number of omitted objects.
func TestReport_RemainingBeyondTheLimit(t *testing.T) {
	var all []string
	for i := range 31 {
		all = append(all, fmt.Sprintf("work/%d", i))
	}
	require.Equal(t, all[:20], shortRemaining(all[:20]))
	short := shortRemaining(all)
	require.Equal(t, append(all[:19:19], "and 12 more"), short)
	short = shortRemaining([]string{strings.Repeat("ä", 1000)})
	require.LessOrEqual(t, len(short[0]), 512)
	require.True(t, strings.HasSuffix(short[0], "…"))
	require.Nil(t, shortRemaining(nil))
}
