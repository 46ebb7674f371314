package clusterprofile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func slice(index string, clusters ...string) *v1alpha1.PlacementDecision {
	d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-decision-" + index, UID: "2",
		Labels: map[string]string{v1alpha1.PlacementLabel: "web", v1alpha1.DecisionIndexLabel: index},
	}}
	for _, cluster := range clusters {
		d.Decisions = append(d.Decisions, v1alpha1.ClusterDecision{ClusterName: cluster, Group: "canary", Reason: "Scheduled",
			Replaces: "old"})
	}
	return d
}

func TestDecisionOf(t *testing.T) {
	bare, platform := slice("1"), slice("0")
	bare.Labels = nil
	platform.Labels = map[string]string{v1alpha1.ClusterPlacementLabel: "web", v1alpha1.DecisionIndexLabel: "0"}
	for _, test := range []struct {
		reason   string
		decision *v1alpha1.PlacementDecision
		want     string
	}{
		{"clusters in their order, as references to profiles", slice("3", "b", "a"), `
			metadata:
			  labels: {multicluster.x-k8s.io/decision-key: web, multicluster.x-k8s.io/placement-key: web,
			    multicluster.x-k8s.io/decision-index: "3"}
			decisions:
			- {clusterProfileRef: {namespace: muster-clusters, name: b}, reason: Scheduled}
			- {clusterProfileRef: {namespace: muster-clusters, name: a}, reason: Scheduled}`},
		{"no clusters and no labels", bare, `
			metadata: {}
			decisions: []`},
		{"a ClusterPlacement differs from a Placement with its name", platform, `
			metadata:
			  labels: {multicluster.x-k8s.io/decision-key: clusterplacement.web,
			    multicluster.x-k8s.io/placement-key: clusterplacement.web, multicluster.x-k8s.io/decision-index: "0"}
			decisions: []`},
	} {
		want := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(test.want, "\t", "")), &want), test.reason)
		want["apiVersion"], want["kind"], want["schedulerName"] = "multicluster.x-k8s.io/v1alpha1", "PlacementDecision",
			"muster"
		metadata := want["metadata"].(map[string]any)
		metadata["namespace"], metadata["name"] = test.decision.Namespace, test.decision.Name
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "placement.muster.dev/v1alpha1", "kind": "PlacementDecision", "name": test.decision.Name, "uid": "2",
			"controller": true,
		}}
		if diff := cmp.Diff(want, DecisionOf(test.decision, Options{}).Object); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.reason, diff)
		}
	}
}

func TestAmendDecision(t *testing.T) {
	for _, test := range []struct {
		reason string
		have   func(*unstructured.Unstructured)
		want   string
	}{
		{"nothing to write", func(*unstructured.Unstructured) {}, ""},
		{"labels, owners and annotations of others stay", func(d *unstructured.Unstructured) {
			d.SetLabels(withLabel(d.GetLabels(), "team", "a"))
			d.SetAnnotations(map[string]string{"seen": "yes"})
			d.SetOwnerReferences(append([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "9"}},
				d.GetOwnerReferences()...))
		}, ""},
		{"a label that was changed", func(d *unstructured.Unstructured) {
			d.SetLabels(withLabel(d.GetLabels(), decisionIndexLabel, "7"))
		},
			`{metadata: {labels: {multicluster.x-k8s.io/decision-index: "0"}}}`},
		{"clusters that were changed", func(d *unstructured.Unstructured) { d.Object["decisions"] = []any{} },
			`{decisions: [{clusterProfileRef: {namespace: muster-clusters, name: a}, reason: Scheduled}]}`},
		{"a scheduler that was changed", func(d *unstructured.Unstructured) {
			delete(d.Object, "schedulerName")
		}, `{schedulerName: muster}`},
		{"a recreated decision takes over the exported object", func(d *unstructured.Unstructured) {
			owners := d.GetOwnerReferences()
			owners[0].UID = "old"
			d.SetOwnerReferences(append([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "9"}},
				owners...))
		}, `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: "9"},
			{apiVersion: placement.muster.dev/v1alpha1, kind: PlacementDecision, name: web-decision-0, uid: "2",
			  controller: true}]}}`},
	} {
		have := DecisionOf(slice("0", "a"), Options{})
		test.have(have)
		before := have.DeepCopy()
		requirePatch(t, test.want, amendDecision(have, DecisionOf(slice("0", "a"), Options{})), test.reason)
		require.Equal(t, before, have, "%s: the cached object must not change", test.reason)
	}
}
