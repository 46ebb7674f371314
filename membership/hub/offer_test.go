package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestOfferFor(t *testing.T) {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "agent"}
	joined := func(status metav1.ConditionStatus) func(*v1alpha1.MemberCluster) {
		return func(c *v1alpha1.MemberCluster) {
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionJoined, Status: status}}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.MemberCluster)
		want   *offer
	}{
		"undecided": {func(*v1alpha1.MemberCluster) {}, &offer{Subject: subject}},
		"accepted": {
			func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) }, &offer{Subject: subject, AutoAccept: true},
		},
		"cluster ID": {
			func(c *v1alpha1.MemberCluster) { c.Spec.ClusterID = "id" }, &offer{Subject: subject, ClusterID: "id"},
		},
		"not joined":  {joined(metav1.ConditionFalse), &offer{Subject: subject}},
		"pull":        {func(c *v1alpha1.MemberCluster) { c.Spec.JoinMode = v1alpha1.JoinPull }, &offer{Subject: subject}},
		"joined":      {joined(metav1.ConditionTrue), nil},
		"denied":      {func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(false) }, nil},
		"leaving":     {func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateLeave }, nil},
		"deleted":     {func(c *v1alpha1.MemberCluster) { c.DeletionTimestamp = new(metav1.Now()) }, nil},
		"push":        {func(c *v1alpha1.MemberCluster) { c.Spec.JoinMode = v1alpha1.JoinPush }, nil},
		"no identity": {func(c *v1alpha1.MemberCluster) { c.Spec.Identity = nil }, nil},
		"all users": {
			func(c *v1alpha1.MemberCluster) {
				c.Spec.Identity = &rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}
			}, nil,
		},
	} {
		cluster := &v1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "edge"},
			Spec:       v1alpha1.MemberClusterSpec{Identity: &rbacv1.Subject{Kind: rbacv1.UserKind, Name: "agent"}},
		}
		test.change(cluster)
		require.Equal(t, test.want, offerFor(cluster), name)
	}
}
