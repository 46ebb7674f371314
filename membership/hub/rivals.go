package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// maxRivals limits the number of names in the condition.
const maxRivals = 5

// rivals lists the JoinRequests of other agents and the other MemberClusters with the cluster ID of a member. It reads
// only caches.
func (r *members) rivals(ctx context.Context, cluster *v1alpha1.MemberCluster) ([]string, error) {
	if cluster.Spec.ClusterID == "" {
		return nil, nil
	}
	var rivals []string
	var clusters v1alpha1.MemberClusterList
	same := client.MatchingFields{byClusterID: cluster.Spec.ClusterID}
	if err := r.client.List(ctx, &clusters, same); err != nil {
		return nil, err
	}
	for i := range clusters.Items {
		if name := clusters.Items[i].Name; name != cluster.Name {
			rivals = append(rivals, "MemberCluster "+name)
		}
	}
	var requests v1alpha1.JoinRequestList
	if err := r.client.List(ctx, &requests, client.InNamespace(r.options.RegistrationNamespace), same); err != nil {
		return nil, err
	}
	for i := range requests.Items {
		if request := &requests.Items[i]; rivalRequest(request) && request.Status.Claim != cluster.Spec.Claim {
			rivals = append(rivals, "JoinRequest "+request.Name)
		}
	}
	slices.Sort(rivals)
	return rivals, nil
}

// rivalRequest reports whether a request is pending because another agent has its cluster ID, or its claim.
func rivalRequest(request *v1alpha1.JoinRequest) bool {
	issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued)
	return request.Status.Answer == v1alpha1.AnswerHeld && issued != nil &&
		(issued.Reason == v1alpha1.ReasonClusterIDTaken || issued.Reason == v1alpha1.ReasonClusterIDChanged)
}

// unique sets the condition ClusterIDUnique if other objects have the cluster ID of a member, or if several agents send
// its heartbeats, for example because the cluster was cloned with its agent.
func (r *members) unique(cluster *v1alpha1.MemberCluster, rivals []string) {
	var message string
	reason := v1alpha1.ReasonClusterIDTaken
	agents := r.heartbeats.Holders(cluster.Name)
	switch reused := lifecycle.ReusedMessage(cluster.Spec.Claim, cluster.Spec.ClaimKeys); {
	case len(agents) > 0:
		reason, message = v1alpha1.ReasonAgentCloned, fmt.Sprintf(
			"Several agents send the heartbeats of this member with the same credential: %s. The cluster was probably "+
				"cloned with the Secrets of its agent. Stop the agent of the clone, delete its Secrets, and register the clone "+
				"with a cluster ID of its own.", named(agents))
	case reused != "":
		reason, message = v1alpha1.ReasonClaimKeyReused, reused
	case len(rivals) > 0:
		message = fmt.Sprintf(
			"Cluster ID %s also belongs to %s. If the cluster was cloned, give the agent of the clone its own cluster ID and "+
				"Secret. Otherwise delete the object that must not have this cluster ID.", cluster.Spec.ClusterID, named(rivals))
	default:
		meta.RemoveStatusCondition(&cluster.Status.Conditions, v1alpha1.ConditionClusterIDUnique)
		return
	}
	r.set(cluster, metav1.Condition{
		Type: v1alpha1.ConditionClusterIDUnique, Status: metav1.ConditionFalse, Reason: reason,
		Message: lifecycle.FormatMessage(message),
	})
}

// named joins the first names of a list.
func named(names []string) string {
	text := strings.Join(names[:min(maxRivals, len(names))], ", ")
	if more := len(names) - maxRivals; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
