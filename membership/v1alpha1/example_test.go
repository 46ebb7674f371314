package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A MemberCluster that is accepted before its cluster joins: only the cluster with this ID can join with this name.
func ExampleMemberCluster() {
	cluster := v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: v1alpha1.MemberClusterSpec{
			Accepted:               new(true),
			ClusterID:              "b7400dc3-eeb7-4cb5-a5bb-43a50eb05dd6",
			HeartbeatPeriodSeconds: 30,
			Leave:                  v1alpha1.LeavePolicy{Resources: v1alpha1.OrphanResources, DeadlineSeconds: 600},
		},
	}
	out, err := yaml.Marshal(cluster.Spec)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(out))
	// Output:
	// accepted: true
	// clusterID: b7400dc3-eeb7-4cb5-a5bb-43a50eb05dd6
	// heartbeatPeriodSeconds: 30
	// leave:
	//   deadlineSeconds: 600
	//   resources: Orphan
}
