package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/muster-sdk/muster/internal/memberleave"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// ClusterSource provides the clusters of the fleet. Implement it for cluster objects other than MemberClusters.
type ClusterSource interface {
	// Run calls fleet.Set with every cluster, then fleet.Synced, and reports every change until ctx ends. It waits for
	// all goroutines that it started. The clusters belong to fleet and must not be modified.
	Run(ctx context.Context, fleet Fleet) error
}

// CountingSource is a [ClusterSource] that can set scheduler.Cluster.Placements itself, for example because it knows of
// other placements. For all other sources the controller counts placements, and ignores the field.
type CountingSource interface {
	ClusterSource
	// CountsPlacements reports whether the source sets the field. It is called once.
	CountsPlacements() bool
}

// Fleet receives clusters from a [ClusterSource]. Its methods may be called concurrently, except for calls about one
// cluster.
type Fleet interface {
	// Set adds or updates a cluster. An Absent cluster is missing without an observed request to remove it, and the
	// placements on it stay. Placements also stay on clusters that were neither set nor removed since the start.
	Set(cluster *scheduler.Cluster)
	// Remove removes a cluster on request. The placements on it leave it.
	Remove(name string)
	// Synced reports that Set was called with all clusters that existed at the start. The controller decides nothing
	// before.
	Synced()
}

// Members provides the MemberClusters of a cache, whose scheme must have membership/v1alpha1. It needs list and watch
// on memberclusters.membership.muster.dev.
func Members(c cache.Cache) ClusterSource { return members{c} }

type members struct{ cache cache.Cache }

func (m members) Run(ctx context.Context, fleet Fleet) error {
	var apis catalog
	set := func(object any) { // called by one goroutine
		if member, ok := object.(*membershipv1alpha1.MemberCluster); ok {
			cluster := clusterOf(member)
			cluster.APIs = apis.of(member.Status.APIs)
			fleet.Set(cluster)
		}
	}
	end, err := watchKind(ctx, m.cache, &membershipv1alpha1.MemberCluster{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			member, ok := object.(*membershipv1alpha1.MemberCluster)
			switch {
			case !ok:
			case memberleave.Requested(member):
				fleet.Remove(member.Name)
			default:
				fleet.Set(absent(member.Name))
			}
		},
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch MemberClusters: %w", err)
	}
	defer end()
	fleet.Synced()
	<-ctx.Done()
	return nil
}

// ClusterOf converts a MemberCluster to a cluster of the scheduler. The result shares no memory with the MemberCluster
// that the caller may modify.
func ClusterOf(member *membershipv1alpha1.MemberCluster) *scheduler.Cluster {
	cluster := clusterOf(member)
	cluster.APIs = apisOf(member.Status.APIs)
	return cluster
}

// policyOf returns the kinds of objects that a member accepts. Nil: the member accepts every kind, or does not report a
// policy.
func policyOf(summary *membershipv1alpha1.MemberPolicySummary) *scheduler.ObjectPolicy {
	if summary == nil {
		return nil
	}
	policy := &scheduler.ObjectPolicy{Truncated: summary.Truncated}
	for _, name := range summary.Kinds {
		kind, group, _ := strings.Cut(name, ".")
		policy.Kinds = append(policy.Kinds, schema.GroupKind{Group: group, Kind: kind})
	}
	return policy
}

// clusterOf is like ClusterOf, but does not set APIs.
func clusterOf(member *membershipv1alpha1.MemberCluster) *scheduler.Cluster {
	status := &member.Status
	cluster := &scheduler.Cluster{
		Name:        member.Name,
		Labels:      maps.Clone(member.Labels),
		Joined:      meta.IsStatusConditionTrue(status.Conditions, membershipv1alpha1.ConditionJoined),
		Leaving:     memberleave.Requested(member),
		Unreported:  unreported(status),
		Healthy:     meta.IsStatusConditionTrue(status.Conditions, membershipv1alpha1.ConditionHealthy),
		Policy:      policyOf(status.MemberPolicy),
		Capacity:    status.Resources.Capacity.DeepCopy(),
		Allocatable: status.Resources.Allocatable.DeepCopy(),
		Available:   status.Resources.Available.DeepCopy(),
	}
	if len(status.Properties) > 0 {
		cluster.Properties = make(map[string]string, len(status.Properties))
		for _, property := range status.Properties {
			cluster.Properties[property.Name] = property.Value
		}
	}
	for _, taint := range member.Spec.Taints {
		cluster.Taints = append(cluster.Taints, corev1.Taint{
			Key: taint.Key, Value: taint.Value, Effect: taint.Effect, TimeAdded: taint.TimeAdded.DeepCopy(),
		})
	}
	slices.SortFunc(cluster.Taints, func(a, b corev1.Taint) int {
		return slices.Compare([]string{a.Key, string(a.Effect)}, []string{b.Key, string(b.Effect)})
	})
	return cluster
}

// unreported reports whether the status of a MemberCluster may lack data that its agent can report: the agent has to
// join again, such as after a restore of the hub, has not reported yet, or could not collect all data.
func unreported(status *membershipv1alpha1.MemberClusterStatus) bool {
	return !meta.IsStatusConditionTrue(status.Conditions, membershipv1alpha1.ConditionJoined) ||
		len(status.Properties) == 0 ||
		meta.IsStatusConditionFalse(status.Conditions, membershipv1alpha1.ConditionPropertiesCollected)
}
