package crds_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestStatus_OfEarlierAgents checks that the status of an agent that does not shorten its report is accepted. The same
// status contains the request for the next credential: a member whose report is rejected loses its credential. The hub
// copies the resources to the MemberCluster. A report beyond the limits is rejected.
func TestStatus_OfEarlierAgents(t *testing.T) {
	c := installed(t)
	all := corev1.ResourceList{}
	for i := range 1000 {
		all[corev1.ResourceName(fmt.Sprintf("devices.example.com/device-%d", i))] = resource.MustParse("1")
	}
	resources := v1alpha1.ResourceUsage{Capacity: all, Allocatable: all, Available: all}

	self := &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: membership.MembershipName},
		Spec:       v1alpha1.MembershipSpec{MemberName: "east", State: v1alpha1.StateJoin, HeartbeatPeriodSeconds: 10},
	}
	require.NoError(t, c.Create(t.Context(), self))
	t.Cleanup(func() { _ = c.Delete(context.Background(), self) })
	self.Status = v1alpha1.MembershipStatus{Resources: resources, Remaining: []string{
		"apply: " + strings.Repeat("x", 4000),
	}}
	require.NoError(t, c.Status().Update(t.Context(), self))

	member := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	require.NoError(t, c.Create(t.Context(), member))
	t.Cleanup(func() { _ = c.Delete(context.Background(), member) })
	member.Status.Resources = resources
	require.NoError(t, c.Status().Update(t.Context(), member))

	for i := range 100 {
		all[corev1.ResourceName(fmt.Sprintf("more.example.com/device-%d", i))] = resource.MustParse("1")
	}
	self.Status.Resources = v1alpha1.ResourceUsage{Capacity: all}
	require.True(t, apierrors.IsInvalid(c.Status().Update(t.Context(), self)))
}
