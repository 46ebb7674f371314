package clusterprofile_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/clusterprofile"
)

// The ClusterProfile of a member.
func ExampleProfileOf() {
	joined := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	east := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	east.Status.Version.Kubernetes = "v1.36.3"
	east.Status.Properties = []membershipv1alpha1.Property{{Name: "topology.kubernetes.io/region", Value: "eu-north-1"}}
	east.Status.Conditions = []metav1.Condition{
		{Type: membershipv1alpha1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "AgentJoined",
			LastTransitionTime: joined},
		{Type: membershipv1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Heartbeating",
			LastTransitionTime: joined},
	}
	profile := clusterprofile.ProfileOf(east, clusterprofile.Options{ClusterManager: "acme"})
	fmt.Println(profile.GetNamespace(), profile.GetLabels())
	status, err := yaml.Marshal(profile.Object["status"])
	if err != nil {
		panic(err)
	}
	fmt.Print(string(status))
	// Output:
	// muster-clusters map[x-k8s.io/cluster-manager:acme]
	// conditions:
	// - lastTransitionTime: "2026-03-01T12:00:00Z"
	//   message: ""
	//   reason: Heartbeating
	//   status: "True"
	//   type: ControlPlaneHealthy
	// - lastTransitionTime: "2026-03-01T12:00:00Z"
	//   message: ""
	//   reason: AgentJoined
	//   status: "True"
	//   type: Joined
	// properties:
	// - name: topology.kubernetes.io/region
	//   value: eu-north-1
	// version:
	//   kubernetes: v1.36.3
}
