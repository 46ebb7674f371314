package crds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
)

// TestColumns checks the columns of kubectl get, as the API server returns them.
func TestColumns(t *testing.T) {
	c := installed(t)
	conditions := func(status ...string) (all []metav1.Condition) {
		for i := 0; i < len(status); i += 2 {
			all = append(
				all,
				metav1.Condition{
					Type:               status[i],
					Status:             metav1.ConditionStatus(status[i+1]),
					Reason:             "Because",
					LastTransitionTime: metav1.Now(),
				},
			)
		}
		return all
	}
	addon := stored(t, c, &v1alpha1.Addon{ObjectMeta: meta("", "columns")})
	addon.Status = v1alpha1.AddonStatus{
		Message: "east cannot apply it", Counts: v1alpha1.AddonCounts{Total: 3, Updated: 2, Available: 1, Degraded: 1},
		Conditions: conditions(v1alpha1.ConditionDegraded, "True"),
	}
	require.NoError(t, c.Status().Update(t.Context(), addon))
	nowhere := stored(t, c, &v1alpha1.Addon{ObjectMeta: meta("", "nowhere")})
	nowhere.Status = v1alpha1.AddonStatus{ObservedGeneration: 1}
	require.NoError(t, c.Status().Update(t.Context(), nowhere))
	member := stored(t, c, &v1alpha1.MemberAddon{ObjectMeta: meta("default", "columns")})
	hosting := &v1alpha1.HostingStatus{Member: "host", Namespace: "somewhere"}
	member.Status = v1alpha1.MemberAddonStatus{
		Message: "The member cannot be reached.",
		Hosting: hosting,
		Conditions: conditions(
			v1alpha1.ConditionConfigured,
			"True",
			v1alpha1.ConditionRegistrationReady,
			"True",
			v1alpha1.ConditionManifestsApplied,
			"False",
			v1alpha1.ConditionAvailable,
			"Unknown",
			v1alpha1.ConditionProgressing,
			"True",
			v1alpha1.ConditionDegraded,
			"False",
		),
	}
	require.NoError(t, c.Status().Update(t.Context(), member))
	stored(t, c, &v1alpha1.AddonConfig{ObjectMeta: meta("default", "columns")})
	stored(
		t,
		c,
		&v1alpha1.AddonTemplate{ObjectMeta: meta("", "columns"), Spec: template(t, `{version: v1.2.3, manifests: []}`)},
	)

	addonColumns := []string{"Name", "Install", "Members", "Updated", "Available", "Degraded", "Message", "Age"}
	for _, test := range []struct {
		path  string
		order []string
		cells map[string]any
	}{
		{
			"addons/columns", addonColumns,
			map[string]any{"Name": "columns", "Install": "Manual", "Members": 3.0, "Updated": 2.0, "Available": 1.0,
				"Degraded": "True", "Message": "east cannot apply it"},
		},
		{
			"addons/nowhere", addonColumns, // the number of members is 0
			map[string]any{"Name": "nowhere", "Install": "Manual", "Members": 0.0, "Updated": 0.0, "Available": 0.0,
				"Degraded": nil, "Message": nil},
		},
		{
			"namespaces/default/memberaddons/columns",
			[]string{"Name", "Available", "Degraded", "Progressing", "Configured", "Registered", "Applied", "Host", "Message",
				"Age"},
			map[string]any{
				"Name": "columns", "Available": "Unknown", "Degraded": "False", "Progressing": "True",
				"Configured": "True", "Registered": "True", "Applied": "False", "Host": "host",
				"Message": "The member cannot be reached.",
			},
		},
		{"namespaces/default/addonconfigs/columns", []string{"Name", "Age"}, map[string]any{"Name": "columns"}},
		{"addontemplates/columns", []string{"Name", "Version", "Age"},
			map[string]any{"Name": "columns", "Version": "v1.2.3"}},
	} {
		order, cells := crdtest.Columns(t, plane.ForTest(t).Config(), "/apis/addon.muster.dev/v1alpha1/"+test.path)
		if diff := cmp.Diff(test.cells, cells); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.path, diff)
		}
		if diff := cmp.Diff(test.order, order); diff != "" {
			t.Errorf("%s: order of columns (-want +got)\n%s", test.path, diff)
		}
	}
}
