package clusterprofile

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

var noon = metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// east returns a member that joined the fleet at noon, with changes.
func east(changes ...func(*membershipv1alpha1.MemberCluster)) *membershipv1alpha1.MemberCluster {
	m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "1", CreationTimestamp: noon}}
	m.Status.Conditions = []metav1.Condition{
		{Type: membershipv1alpha1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "AgentJoined", Message: "In.",
			LastTransitionTime: noon},
		{Type: membershipv1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Heartbeating", Message: "Well.",
			LastTransitionTime: noon},
	}
	for _, f := range changes {
		f(m)
	}
	return m
}

func properties(pairs ...string) func(*membershipv1alpha1.MemberCluster) {
	return func(m *membershipv1alpha1.MemberCluster) {
		m.Status.Properties = nil
		for i := 0; i < len(pairs); i += 2 {
			m.Status.Properties = append(m.Status.Properties, membershipv1alpha1.Property{Name: pairs[i], Value: pairs[i+1]})
		}
	}
}

func healthy(status metav1.ConditionStatus) func(*membershipv1alpha1.MemberCluster) {
	return func(m *membershipv1alpha1.MemberCluster) { m.Status.Conditions[1].Status = status }
}

func TestProfileOf(t *testing.T) {
	for _, test := range []struct {
		reason string
		member *membershipv1alpha1.MemberCluster
		field  []string
		want   any
	}{
		{"the cluster manager is in the label that consumers select by", east(), []string{"metadata", "labels"},
			map[string]any{managerLabel: "acme"}},
		{
			"the cluster ID is a label", east(func(m *membershipv1alpha1.MemberCluster) {
				m.Spec.ClusterID = "7f0a"
			}),
			[]string{"metadata", "labels", memberIDLabel}, "7f0a",
		},
		{
			"a cluster ID that is an invalid label value is omitted",
			east(func(m *membershipv1alpha1.MemberCluster) {
				m.Spec.ClusterID = "arn:aws:eks"
			}),
			[]string{"metadata", "labels"}, map[string]any{managerLabel: "acme"},
		},
		{
			"a label of the member precedes the cluster ID", east(func(m *membershipv1alpha1.MemberCluster) {
				m.Spec.ClusterID, m.Labels = "7f0a", map[string]string{memberIDLabel: "shop-1"}
			}), []string{"metadata", "labels", memberIDLabel}, "shop-1",
		},
		{"the MemberCluster is the controlling owner", east(), []string{"metadata", "ownerReferences"}, []any{map[string]any{
			"apiVersion": "membership.muster.dev/v1alpha1", "kind": "MemberCluster", "name": "east", "uid": "1",
			"controller": true,
		}}},
		{"no properties", east(), []string{"status", "properties"}, nil},
		{"no version", east(), []string{"status", "version"}, nil},
		{
			"the version is that of the member's API server", east(func(m *membershipv1alpha1.MemberCluster) {
				m.Status.Version.Kubernetes = "v1.36.3"
			}),
			[]string{"status", "version", "kubernetes"}, "v1.36.3",
		},
		{
			"properties are sorted, and empty values are omitted",
			east(properties("b", "2", "empty", "", "a", "1")),
			[]string{"status", "properties"}, []any{map[string]any{"name": "a", "value": "1"},
				map[string]any{"name": "b", "value": "2"}},
		},
		{
			"missing conditions are Unknown since the creation of the member",
			east(func(m *membershipv1alpha1.MemberCluster) {
				m.Status.Conditions = nil
			}),
			[]string{"status", "conditions"}, []any{
				map[string]any{"type": controlPlaneHealthy, "status": "Unknown", "reason": "NotReported",
					"message": "The condition has not been reported yet.", "lastTransitionTime": "2026-03-01T12:00:00Z"},
				map[string]any{"type": joined, "status": "Unknown", "reason": "NotReported", "message": "The condition has not " +
					"been reported yet.",
					"lastTransitionTime": "2026-03-01T12:00:00Z"},
			},
		},
		{
			"conditions and their times are those of the member", east(healthy(metav1.ConditionFalse)),
			[]string{"status", "conditions"}, []any{
				map[string]any{"type": controlPlaneHealthy, "status": "False", "reason": "Heartbeating", "message": "Well.",
					"lastTransitionTime": "2026-03-01T12:00:00Z"},
				map[string]any{"type": joined, "status": "True", "reason": "AgentJoined", "message": "In.",
					"lastTransitionTime": "2026-03-01T12:00:00Z"},
			},
		},
	} {
		profile := ProfileOf(test.member, Options{ClusterManager: "acme"})
		got, _, err := unstructured.NestedFieldCopy(profile.Object, test.field...)
		require.NoError(t, err, test.reason)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.reason, diff)
		}
	}
}

func TestAmendProfile(t *testing.T) {
	theirs := map[string]any{"type": "Patched", "status": "True", "reason": "Yes", "message": "",
		"lastTransitionTime": "2026-03-01T12:00:00Z"}
	for _, test := range []struct {
		reason     string
		have       func(profile *unstructured.Unstructured) // changes the profile of the unchanged member
		member     *membershipv1alpha1.MemberCluster        // the desired profile is that of this member
		metadata   string
		status     string
		transition bool
	}{
		{reason: "nothing to write", member: east()},
		{
			reason: "additions of other clients stay", member: east(),
			have: func(p *unstructured.Unstructured) {
				set(p, "The East", "spec", "displayName")
				set(p, []any{map[string]any{"name": "secrets"}}, "status", "accessProviders")
				set(p, append([]any{theirs}, list(p.Object["status"].(map[string]any), "conditions")...), "status", "conditions")
				p.SetLabels(map[string]string{managerLabel: DefaultClusterManager, "team": "a"})
			},
		},
		{
			reason: "a missing label is restored, and other labels stay", member: east(),
			have:     func(p *unstructured.Unstructured) { p.SetLabels(map[string]string{"team": "a"}) },
			metadata: "{metadata: {labels: {x-k8s.io/cluster-manager: muster}}}",
		},
		{
			reason: "the patch contains only the difference", member: east(properties("region", "eu")),
			status: "{status: {properties: [{name: region, value: eu}]}}",
		},
		{
			reason: "a removed property is removed", member: east(),
			have: func(p *unstructured.Unstructured) {
				set(p, []any{map[string]any{"name": "a", "value": "1"}}, "status", "properties")
			},
			status: "{status: {properties: null}}",
		},
		{
			reason: "a removed version is removed", member: east(),
			have:   func(p *unstructured.Unstructured) { set(p, "v1.30.0", "status", "version", "kubernetes") },
			status: "{status: {version: {kubernetes: null}}}",
		},
		{
			reason: "the conditions of a new profile are transitions", member: east(properties("a", "1")),
			have: func(p *unstructured.Unstructured) { delete(p.Object, "status") },
			status: `{status: {properties: [{name: a, value: "1"}], conditions: [
				{type: ControlPlaneHealthy, status: "True", reason: Heartbeating, message: Well.,
				  lastTransitionTime: "2026-03-01T12:00:00Z"},
				{type: Joined, status: "True", reason: AgentJoined, message: In., lastTransitionTime: "2026-03-01T12:00:00Z"}]}}`,
			transition: true,
		},
		{
			reason: "a changed status is a transition, and other conditions keep their positions",
			member: east(healthy(metav1.ConditionUnknown)),
			have: func(p *unstructured.Unstructured) {
				set(p, append([]any{theirs}, list(p.Object["status"].(map[string]any), "conditions")...), "status", "conditions")
			},
			status: `{status: {conditions: [
				{type: Patched, status: "True", reason: "Yes", message: "", lastTransitionTime: "2026-03-01T12:00:00Z"},
				{type: ControlPlaneHealthy, status: Unknown, reason: Heartbeating, message: Well.,
				  lastTransitionTime: "2026-03-01T12:00:00Z"},
				{type: Joined, status: "True", reason: AgentJoined, message: In., lastTransitionTime: "2026-03-01T12:00:00Z"}]}}`,
			transition: true,
		},
		{
			reason: "another message is no transition", member: east(func(m *membershipv1alpha1.MemberCluster) {
				m.Status.Conditions[0].Message = "Still in."
			}),
			status: `{status: {conditions: [
				{type: ControlPlaneHealthy, status: "True", reason: Heartbeating, message: Well.,
				  lastTransitionTime: "2026-03-01T12:00:00Z"},
				{type: Joined, status: "True", reason: AgentJoined, message: Still in.,
				  lastTransitionTime: "2026-03-01T12:00:00Z"}]}}`,
		},
		{
			reason: "invalid types in the status cause no error", member: east(properties("a", "1")),
			have: func(p *unstructured.Unstructured) {
				p.Object["status"] = map[string]any{"version": "new", "properties": "none", "conditions": []any{"odd"}}
			},
			status: `{status: {properties: [{name: a, value: "1"}], conditions: [odd,
				{type: ControlPlaneHealthy, status: "True", reason: Heartbeating, message: Well.,
				  lastTransitionTime: "2026-03-01T12:00:00Z"},
				{type: Joined, status: "True", reason: AgentJoined, message: In., lastTransitionTime: "2026-03-01T12:00:00Z"}]}}`,
			transition: true,
		},
	} {
		have := ProfileOf(east(), Options{})
		if test.have != nil {
			test.have(have)
		}
		before := have.DeepCopy()
		metadata, status, transition := amendProfile(have, ProfileOf(test.member, Options{}), nil)
		requirePatch(t, test.metadata, metadata, test.reason)
		requirePatch(t, test.status, status, test.reason)
		require.Equal(t, test.transition, transition, test.reason)
		require.Equal(t, before, have, "%s: the cached object must not change", test.reason)
	}
}

// TestAmendProfile_Idempotent checks for any profile or decision that after the changes are applied, no further change
// is necessary.
func TestAmendProfile_Idempotent(t *testing.T) {
	member := rapid.Custom(func(t *rapid.T) *membershipv1alpha1.MemberCluster {
		pairs := rapid.SliceOfN(rapid.StringMatching("[ab]?"), 4, 4).Draw(t, "properties")
		m := east(properties(pairs...),
			healthy(rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"}).Draw(t, "healthy")))
		m.Status.Conditions = m.Status.Conditions[rapid.IntRange(0, 2).Draw(t, "from"):]
		m.Status.Version.Kubernetes = rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(t, "version")
		m.Spec.ClusterID = rapid.SampledFrom([]string{"", "a", "b:c"}).Draw(t, "id")
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		have, want := ProfileOf(member.Draw(t, "have"), Options{}), ProfileOf(member.Draw(t, "want"), Options{})
		metadata, status, _ := amendProfile(have, want, nil)
		have.Object = merge(merge(have.Object, metadata), status)
		metadata, status, transition := amendProfile(have, want, nil)
		require.Nil(t, metadata)
		require.Nil(t, status)
		require.False(t, transition)
	})
}

func TestOptions_Validate(t *testing.T) {
	for _, test := range []struct {
		reason string
		o      Options
		want   string
	}{
		{"the zero value works", Options{}, ""},
		{"an invalid namespace", Options{ProfileNamespace: "My.Clusters"}, "ProfileNamespace"},
		{"a provider without a name", Options{AccessProviders: []AccessProvider{providerOf("")}}, "AccessProviders[0].Name"},
		{"two providers of one name",
			Options{AccessProviders: []AccessProvider{providerOf("a"), providerOf("a")}}, "AccessProviders[1].Name"},
		{"a provider without a function", Options{AccessProviders: []AccessProvider{{Name: "a"}}},
			"AccessProviders[0].Cluster"},
		{"a cluster manager that is an invalid label value", Options{ClusterManager: "acme/eu"}, "ClusterManager"},
	} {
		err := test.o.withDefaults().validate()
		if test.want == "" {
			require.NoError(t, err, test.reason)
		} else {
			require.ErrorContains(t, err, test.want, test.reason)
		}
	}
}

func set(u *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(u.Object, value, fields...); err != nil {
		panic(err)
	}
}

func withLabel(labels map[string]string, name, value string) map[string]string {
	labels[name] = value
	return labels
}

func toYAML(t testing.TB, object any) string {
	t.Helper()
	data, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(data)
}

// requirePatch requires that a patch equals this YAML, or is nil if the YAML is empty.
func requirePatch(t *testing.T, want string, got map[string]any, reason string) {
	t.Helper()
	if want == "" {
		require.Nil(t, got, reason)
		return
	}
	var desired any
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(want, "\t", "")), &desired), reason)
	require.Equal(t, toYAML(t, desired), toYAML(t, got), reason)
}

// merge applies a merge patch in the way of the API server.
func merge(object, patch map[string]any) map[string]any {
	merged := maps.Clone(object)
	if merged == nil {
		merged = map[string]any{}
	}
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		former, _ := merged[k].(map[string]any)
		items, isList := v.([]any)
		switch {
		case isMap:
			merged[k] = merge(former, inner)
		case v == nil || isList && items == nil: // a nil slice is null on the wire
			delete(merged, k)
		default:
			merged[k] = v
		}
	}
	return merged
}
