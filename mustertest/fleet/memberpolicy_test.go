package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestMemberPolicy_ReportedAndScheduled checks that a member reports the kinds that its MemberPolicies accept, that a
// Placement that requires another kind does not select the member, and that a condition of a Work names the policy that
// rejects an object.
func TestMemberPolicy_ReportedAndScheduled(t *testing.T) {
	hub := fleet.StartHub(t, hubPlane.ForTest(t).Config(), fleet.HubOptions{})
	defer hub.Stop()
	member := memberPlane.ForTest(t).Config()
	onMember := mustertest.Client(t, member, mustertest.Scheme(tenancyv1alpha1.AddToScheme))
	stop := hub.Join("closed", member, assembly.AgentOptions{Membership: agent.Options{
		Store: storeOf("closed"), ClusterID: "closed", Labels: map[string]string{"policy": "member"},
	}})
	defer stop()
	ctx, c := t.Context(), hub.Client()
	closed := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "closed"}}
	waitForKinds := func(kinds ...string) {
		t.Helper()
		mustertest.Eventually(t, time.Minute, fmt.Sprint("the member reports that it accepts ", kinds), func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(closed), closed); err != nil {
				return err
			}
			if got := closed.Status.MemberPolicy; got == nil || !slices.Equal(got.Kinds, kinds) {
				return fmt.Errorf("the summary is %+v", got)
			}
			return nil
		})
	}
	mustertest.Holds(t, time.Minute, "a member without MemberPolicies accepts every object", func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(closed), closed) == nil && closed.Status.MemberPolicy == nil
	})

	policy := &tenancyv1alpha1.MemberPolicy{ObjectMeta: metav1.ObjectMeta{Name: "closed"}}
	policy.Spec.Rules = []tenancyv1alpha1.MemberPolicyRule{
		{Kinds: []tenancyv1alpha1.ObjectKind{{Kind: "ConfigMap"}}, Namespaces: []string{"shop"}},
	}
	require.NoError(t, onMember.Create(ctx, policy))
	t.Cleanup(func() { require.NoError(t, onMember.Delete(context.Background(), policy)) })
	waitForKinds("ConfigMap")
	require.Equal(t, []string{"shop"}, closed.Status.MemberPolicy.Namespaces)

	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: closed.Status.Namespace, Name: "rejected"},
		Spec:       workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{greeting("hello")}},
	}
	require.NoError(t, c.Create(ctx, work))
	mustertest.Holds(t, time.Minute, "the Work names the policy", func() bool {
		require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(work), work))
		return slices.ContainsFunc(work.Status.Conditions, func(c metav1.Condition) bool {
			return strings.Contains(c.Message, "No rule of MemberPolicy closed accepts ConfigMap in namespace default")
		})
	})

	namespace := mustertest.Namespace(t, c)
	require.NoError(t, c.Create(ctx, &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: tenancyv1alpha1.GlobalClusterSet},
	}))
	placement := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	placement.Spec.Policy.Affinity = &placementv1alpha1.ClusterAffinity{Required: []placementv1alpha1.ClusterSelectorTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"policy": "member"}},
	}}}
	placement.Spec.Policy.RequiredAPIs = []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}
	require.NoError(t, c.Create(ctx, placement))
	waitForDecision := func(message string, clusters int32) {
		t.Helper()
		mustertest.Eventually(t, time.Minute, "the Placement is decided", func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(placement), placement); err != nil {
				return err
			}
			s := meta.FindStatusCondition(placement.Status.Conditions, placementv1alpha1.ConditionScheduled)
			if s == nil || !strings.Contains(s.Message, message) || placement.Status.SelectedClusters != clusters {
				return fmt.Errorf("%d clusters: %+v", placement.Status.SelectedClusters, s)
			}
			return nil
		})
	}
	waitForDecision("does not accept Deployment.apps", 0)

	mustertest.Change(t, onMember, policy, func(p *tenancyv1alpha1.MemberPolicy) {
		p.Spec.Rules[0].Kinds = append(p.Spec.Rules[0].Kinds, tenancyv1alpha1.ObjectKind{Group: "apps", Kind: "*"})
	})
	waitForKinds("*.apps", "ConfigMap")
	waitForDecision("", 1)
	policy.Spec.Rules = nil
	mustertest.Change(t, onMember, policy, func(p *tenancyv1alpha1.MemberPolicy) { p.Spec.Rules = nil })
	waitForKinds()
	waitForDecision("", 1) // A selected cluster stays selected.
	remove(t, c, work)
}
