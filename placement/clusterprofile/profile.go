package clusterprofile

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// Names that the API of ClusterProfiles defines.
const (
	managerLabel        = "x-k8s.io/cluster-manager"
	memberIDLabel       = group + "/inventory-member-id"
	controlPlaneHealthy = "ControlPlaneHealthy"
	joined              = "Joined"
)

// ProfileOf returns the ClusterProfile of a member. It is a pure function: equal members have equal profiles.
func ProfileOf(member *membershipv1alpha1.MemberCluster, o Options) *unstructured.Unstructured {
	o = o.withDefaults()
	profile := newObject("ClusterProfile", o.ProfileNamespace, member.Name)
	labels := map[string]string{managerLabel: o.ClusterManager}
	if id := memberID(member); id != "" {
		labels[memberIDLabel] = id
	}
	profile.SetLabels(labels)
	profile.SetOwnerReferences(
		[]metav1.OwnerReference{ownedBy(member, membershipv1alpha1.GroupVersion.WithKind("MemberCluster"))})
	profile.Object["spec"] = map[string]any{
		"displayName":    member.Name,
		"clusterManager": map[string]any{"name": o.ClusterManager},
	}
	status := map[string]any{"conditions": []any{
		conditionOf(member, membershipv1alpha1.ConditionHealthy, controlPlaneHealthy),
		conditionOf(member, membershipv1alpha1.ConditionJoined, joined),
	}}
	if version := member.Status.Version.Kubernetes; version != "" {
		status["version"] = map[string]any{"kubernetes": version}
	}
	if properties := propertiesOf(member); len(properties) > 0 {
		status["properties"] = properties
	}
	if access := o.accessTo(member); len(access) > 0 {
		status["accessProviders"] = access
	}
	profile.Object["status"] = status
	return profile
}

// memberID returns the ID by which consumers recognize profiles of one cluster from different managers. It is the value
// of the label that an administrator set on the member, or else the ID of the cluster. Empty: both are unknown.
func memberID(member *membershipv1alpha1.MemberCluster) string {
	if id := member.Labels[memberIDLabel]; id != "" {
		return id
	}
	if id := member.Spec.ClusterID; len(validation.IsValidLabelValue(id)) == 0 {
		return id
	}
	return ""
}

// propertiesOf returns the properties of a member, sorted by name. It omits properties without a value, which the API
// of ClusterProfiles does not allow. The other limits of a member's properties are as strict as those of the API.
func propertiesOf(member *membershipv1alpha1.MemberCluster) []any {
	var properties []any
	for _, property := range slices.SortedFunc(slices.Values(member.Status.Properties),
		func(a, b membershipv1alpha1.Property) int {
			return strings.Compare(a.Name, b.Name)
		}) {
		if property.Value != "" {
			properties = append(properties, map[string]any{"name": property.Name, "value": property.Value})
		}
	}
	return properties
}

// conditionOf returns a condition of a member with the type that ClusterProfiles use for it.
func conditionOf(member *membershipv1alpha1.MemberCluster, ours, theirs string) map[string]any {
	condition := meta.FindStatusCondition(member.Status.Conditions, ours)
	if condition == nil {
		condition = &metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: "NotReported", Message: "The condition has not been reported yet.",
			LastTransitionTime: member.CreationTimestamp,
		}
	}
	return map[string]any{
		"type": theirs, "status": string(condition.Status), "reason": condition.Reason, "message": condition.Message,
		"lastTransitionTime": condition.LastTransitionTime.UTC().Format(time.RFC3339),
	}
}

// amendProfile returns the changes from an existing profile to the desired one: of its metadata, and of its status. Nil
// means no change. turned reports whether a condition is new or has another status. Content that does not come from a
// member and does not conflict with the desired content stays: the display name, and the labels, conditions and access
// providers of other clients.
func amendProfile(have, want *unstructured.Unstructured,
	access []AccessProvider) (metadata, status map[string]any, turned bool) {
	wrong := map[string]any{}
	if labels := missing(have.GetLabels(), want.GetLabels()); labels != nil {
		wrong["labels"] = labels
	}
	if annotations := missing(have.GetAnnotations(), want.GetAnnotations()); annotations != nil {
		wrong["annotations"] = annotations
	}
	if len(wrong) > 0 {
		metadata = map[string]any{"metadata": wrong}
	}
	is, _ := have.Object["status"].(map[string]any)
	shall := want.Object["status"].(map[string]any)
	change := map[string]any{}
	if !reflect.DeepEqual(kubernetes(is), kubernetes(shall)) {
		change["version"] = map[string]any{"kubernetes": kubernetes(shall)}
	}
	if got, wanted := list(is, "properties"), list(shall, "properties"); !same(got, wanted) {
		change["properties"] = wanted
	}
	merged, turned := mergeConditions(list(is, "conditions"), list(shall, "conditions"))
	if !same(list(is, "conditions"), merged) {
		change["conditions"] = merged
	}
	if providers := mergeAccess(list(is, "accessProviders"), list(shall, "accessProviders"), access); !same(
		list(is, "accessProviders"), providers) {
		change["accessProviders"] = providers
	}
	if len(change) > 0 {
		status = map[string]any{"status": change}
	}
	return metadata, status, turned
}

// mergeConditions merges the desired conditions into the existing ones. turned reports whether one of them is new or
// has another status.
func mergeConditions(have, want []any) (merged []any, turned bool) {
	merged = slices.Clone(have)
	for _, item := range want {
		condition := item.(map[string]any)
		i := slices.IndexFunc(merged, func(other any) bool {
			there, ok := other.(map[string]any)
			return ok && there["type"] == condition["type"]
		})
		if i < 0 {
			merged, turned = append(merged, condition), true
			continue
		}
		turned = turned || merged[i].(map[string]any)["status"] != condition["status"]
		merged[i] = condition
	}
	return merged, turned
}

// kubernetes returns the Kubernetes version in a status, or nil if there is none.
func kubernetes(status map[string]any) any {
	version, _ := status["version"].(map[string]any)
	return version["kubernetes"]
}

func list(in map[string]any, field string) []any {
	items, _ := in[field].([]any)
	return items
}

func same(a, b []any) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
