package progress_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// ExampleStatus has a canary, a cluster that rejects its assigned content, and a pending cluster.
func ExampleStatus() {
	web := workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	reported := func(message string, conditions ...metav1.Condition) []progress.Work {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		work.Status.ObservedGeneration, work.Status.Message, work.Status.Conditions = 2, message, conditions
		work.Status.Manifests = []workv1alpha1.ManifestStatus{{
			ResourceIdentifier: web,
			Feedback: []workv1alpha1.FeedbackValue{{Name: "readyReplicas", Type: workv1alpha1.FeedbackNumber,
				Value: "3"}},
		}}
		return []progress.Work{progress.Of(work)}
	}
	healthy := []metav1.Condition{{Type: "Applied", Status: "True"}, {Type: "Available", Status: "True"},
		{Type: "Degraded", Status: "False"}}
	failed := []metav1.Condition{{Type: "Applied", Status: "False", Reason: "Rejected"},
		{Type: "Degraded", Status: "True", Reason: "Rejected"}}

	clusters := []progress.Cluster{
		{Name: "canary", Chosen: true, Reachable: true, Revision: "web-2", Current: true,
			Works: reported("1 object applied and ready.", healthy...)},
		{Name: "east", Chosen: true, Reachable: true, Revision: "web-2", Current: true,
			Works: reported("apps/Deployment shop/web: spec.replicas: must not be negative", failed...)},
		{Name: "west", Chosen: true, Reachable: true, Revision: "web-1", Current: true,
			Works: reported("1 object applied and ready.", healthy...), Hold: rollout.HoldConcurrency},
	}
	for _, cluster := range clusters {
		fmt.Println(cluster.Name, cluster.Health(), cluster.State("web-2"))
	}

	status := progress.Status(progress.Observed{
		Generation: 4, Revision: "web-2", Clusters: clusters, Now: time.Unix(0, 0),
		Rollout: v1alpha1.RolloutStatus{Revision: "web-2", Phase: v1alpha1.PhaseProgressing},
	})
	fmt.Println(status.Message)
	for _, condition := range status.Conditions {
		fmt.Println(condition.Type, condition.Status, condition.Reason)
	}
	fmt.Println(status.Feedback[0].ResourceIdentifier, status.Feedback[0].Value, status.Feedback[0].Sum)
	// Output:
	// canary Succeeded Available
	// east Failed Failed
	// west Succeeded Pending
	// 1 of 3 clusters failed, east: apps/Deployment shop/web: spec.replicas: must not be negative. Revision web-2 is assigned to 2 of 3 clusters: 1 available, 1 pending, 1 failed.
	// Applied False NotApplied
	// Available False NotAvailable
	// Progressing True Progressing
	// Degraded True ClustersFailed
	// Ready False ClustersFailed
	// Stalled True ClustersFailed
	// apps/Deployment shop/web readyReplicas 9
}
