package hub

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestOrphansCondition_NamesWorks checks that the message contains the number of objects, the names of their Works and
// the next step.
func TestOrphansCondition_NamesWorks(t *testing.T) {
	condition, orphaned := orphansCondition(&v1alpha1.OrphanSummary{Objects: 7, Works: 3,
		WorkNames: []string{"cart", "shop"}}, "east")
	require.True(t, orphaned)
	require.Equal(t, metav1.ConditionFalse, condition.Status)
	require.Equal(t, v1alpha1.ReasonObjectsOrphaned, condition.Reason)
	require.Contains(t, condition.Message, "Member east keeps 7 objects of the Works cart, shop and 1 more")
	for _, empty := range []*v1alpha1.OrphanSummary{nil, {}} {
		condition, orphaned = orphansCondition(empty, "east")
		require.False(t, orphaned)
		require.Equal(t, metav1.ConditionTrue, condition.Status)
	}
}

// TestOrphansMetric_OnlyMembersWithOrphans checks that the metric has one series for each member with orphaned objects.
func TestOrphansMetric_OnlyMembersWithOrphans(t *testing.T) {
	var all orphans
	all.set("east", &v1alpha1.OrphanSummary{Objects: 7})
	all.set("west", &v1alpha1.OrphanSummary{Objects: 2})
	all.set("west", nil)
	all.set("north", &v1alpha1.OrphanSummary{})
	require.NoError(t, testutil.CollectAndCompare(&all, strings.NewReader(`
# HELP muster_member_orphaned_objects Objects on a member that no Work contains any more `+
		`although no user requested their deletion. Only members with such objects have a value.
# TYPE muster_member_orphaned_objects gauge
muster_member_orphaned_objects{member="east"} 7
`)))
}
