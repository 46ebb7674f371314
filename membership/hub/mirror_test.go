package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestMirror(t *testing.T) {
	beat := metav1.NowMicro()
	reported := v1alpha1.MembershipStatus{
		Version:    v1alpha1.VersionInfo{Kubernetes: "v1.36.0", Agent: "v1"},
		Resources:  v1alpha1.ResourceUsage{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}},
		Properties: []v1alpha1.Property{{Name: "region", Value: "eu"}},
		APIs:       []v1alpha1.ServedAPIs{{GroupVersion: "apps/v1", Kinds: []string{"Deployment"}}},
		Agents:     []v1alpha1.AgentStatus{{Type: v1alpha1.MembershipAgent}, {Type: "Works"}},
	}
	status := v1alpha1.MemberClusterStatus{
		Properties: []v1alpha1.Property{{Name: "gone", Value: "x"}},
		Agents: []v1alpha1.AgentStatus{{Type: v1alpha1.MembershipAgent, LastHeartbeat: &beat},
			{Type: "Gone", LastHeartbeat: &beat}},
	}
	mirror(&status, memberObserved{})
	require.Equal(t, "gone", status.Properties[0].Name, "without a Membership there is no newer report")

	mirror(&status, memberObserved{membership: &v1alpha1.Membership{Status: reported}})
	require.Equal(t, v1alpha1.MemberClusterStatus{
		Version: reported.Version, Resources: reported.Resources, Properties: reported.Properties, APIs: reported.APIs,
		Agents: []v1alpha1.AgentStatus{{Type: v1alpha1.MembershipAgent, LastHeartbeat: &beat}, {Type: "Works"}},
	}, status, "the reports of the agents and the heartbeats that the hub has observed")
}
