package hub

import (
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// orphansDesc is a descriptor and not a registered metric: each hub is a separate collector.
var orphansDesc = prometheus.NewDesc("muster_member_orphaned_objects",
	"Objects on a member that no Work contains any more although no user requested their deletion. Only members with "+
		"such objects have a value.",
	[]string{"member"}, nil)

// orphans is a prometheus.Collector of the orphaned objects that members report. The zero value is ready for use.
type orphans struct {
	mu sync.Mutex
	of map[string]int64 // members with orphaned objects
}

func (o *orphans) set(member string, summary *v1alpha1.OrphanSummary) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if summary == nil || summary.Objects == 0 {
		delete(o.of, member)
		return
	}
	if o.of == nil {
		o.of = map[string]int64{}
	}
	o.of[member] = summary.Objects
}

// Describe implements prometheus.Collector.
func (o *orphans) Describe(ch chan<- *prometheus.Desc) { ch <- orphansDesc }

// Collect implements prometheus.Collector.
func (o *orphans) Collect(ch chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for member, objects := range o.of {
		ch <- prometheus.MustNewConstMetric(orphansDesc, prometheus.GaugeValue, float64(objects), member)
	}
}

// reportOrphans sets the condition NoOrphans of a member from the summary in its status. Members that never had
// orphaned objects have no such condition.
func (r *members) reportOrphans(cluster *v1alpha1.MemberCluster) {
	if condition, changes := orphansCondition(cluster.Status.Orphans, cluster.Name); changes ||
		meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionNoOrphans) != nil {
		r.set(cluster, condition)
	}
}

// orphansCondition returns the condition NoOrphans for a summary, and whether the member has orphaned objects.
func orphansCondition(summary *v1alpha1.OrphanSummary, member string) (_ metav1.Condition, orphaned bool) {
	if summary == nil || summary.Objects == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionNoOrphans, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoOrphans,
			Message: "The member has no orphaned objects.",
		}, false
	}
	names := strings.Join(summary.WorkNames, ", ")
	if more := summary.Works - int64(len(summary.WorkNames)); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionNoOrphans, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonObjectsOrphaned,
		Message: fmt.Sprintf("Member %s keeps %d objects of the Works %s, although these Works do not contain them any "+
			"more: no user requested "+
			"their deletion. Create the Works again to adopt the objects, or release the objects on the member to delete them.",
			member, summary.Objects, names),
	}, true
}
