package feedback_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/feedback"
)

// full has an object of each kind with all of its well-known values.
var full = map[string]string{
	"Deployment": "{apiVersion: apps/v1, kind: Deployment, status: {replicas: 3, readyReplicas: 2, " +
		"availableReplicas: 1, updatedReplicas: 3}}",
	"StatefulSet": "{apiVersion: apps/v1, kind: StatefulSet, status: {replicas: 3, readyReplicas: 2, " +
		"availableReplicas: 1, updatedReplicas: 3}}",
	"ReplicaSet": "{apiVersion: apps/v1, kind: ReplicaSet, status: {replicas: 3, readyReplicas: 2, " +
		"availableReplicas: 1}}",
	"DaemonSet": "{apiVersion: apps/v1, kind: DaemonSet, status: {desiredNumberScheduled: 3, numberReady: " +
		"2, numberAvailable: 1, updatedNumberScheduled: 3}}",
	"Job": "{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, failed: 2, active: 3, " +
		"conditions: [{type: Complete, status: 'True'}]}}",
	"Pod": "{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: " +
		"'False'}]}}",
	"Service":               "{apiVersion: v1, kind: Service, status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}}",
	"PersistentVolumeClaim": "{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}",
}

func TestWellKnown(t *testing.T) {
	tests := []struct{ reason, object, want string }{
		{"Deployment", full["Deployment"],
			"replicas=Number:3 readyReplicas=Number:2 availableReplicas=Number:1 updatedReplicas=Number:3"},
		{"StatefulSet", full["StatefulSet"],
			"replicas=Number:3 readyReplicas=Number:2 availableReplicas=Number:1 updatedReplicas=Number:3"},
		{"ReplicaSet", full["ReplicaSet"], "replicas=Number:3 readyReplicas=Number:2 availableReplicas=Number:1"},
		{"DaemonSet", full["DaemonSet"], "desiredNumberScheduled=Number:3 numberReady=Number:2 " +
			"numberAvailable=Number:1 updatedNumberScheduled=Number:3"},
		{"Job", full["Job"], "jobComplete=String:True jobSucceeded=Number:1 jobFailed=Number:2 jobActive=Number:3"},
		{"Pod", full["Pod"], "podPhase=String:Running podReady=String:False"},
		{"Service", full["Service"], "loadBalancerAddress=String:10.0.0.1"},
		{"PersistentVolumeClaim", full["PersistentVolumeClaim"], "claimPhase=String:Bound"},
		{"zero values that the API omits", "{apiVersion: apps/v1, kind: Deployment, status: {replicas: 3}}",
			"replicas=Number:3 readyReplicas=Number:0 availableReplicas=Number:0 updatedReplicas=Number:0"},
		{"Deployment with an empty status", "{apiVersion: apps/v1, kind: Deployment, status: {}}", ""},
		{"running Job has no jobComplete", "{apiVersion: batch/v1, kind: Job, status: {active: 1}}",
			"jobSucceeded=Number:0 jobFailed=Number:0 jobActive=Number:1"},
		{"Service with a hostname and an IP", "{apiVersion: v1, kind: Service, status: {loadBalancer: " +
			"{ingress: [{hostname: a}, {ip: 10.0.0.1}]}}}", `loadBalancerAddress=JSON:["a","10.0.0.1"]`},
		{"Service without an address", "{apiVersion: v1, kind: Service, status: {loadBalancer: {}}}", ""},
		{"kind Pod of another group", "{apiVersion: example.com/v1, kind: Pod, status: {phase: Running}}", ""},
		{"ConfigMap has no values", "{apiVersion: v1, kind: ConfigMap, data: {phase: a}}", ""},
		{"invalid status has no values", "{apiVersion: v1, kind: Pod, status: {phase: " + strings.Repeat("x", 2000) +
			", conditions: 1}}", ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			var got []string
			for _, v := range feedback.WellKnown(object(t, test.object)) {
				got = append(got, v.Name+"="+string(v.Type)+":"+v.Value)
			}
			require.Empty(t, cmp.Diff(test.want, strings.Join(got, " ")), "(-want +got)")
		})
	}
	require.Empty(t, feedback.WellKnown(nil))
}

// TestWellKnown_DocumentedTable checks that the table in the package documentation matches the kinds and names in their
// order.
func TestWellKnown_DocumentedTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^//\t(\w+) {2,}(.*)$`).FindAllStringSubmatch(string(doc), -1)
	require.Len(t, rows, len(full))
	for _, row := range rows {
		var names []string
		for _, value := range feedback.WellKnown(object(t, full[row[1]])) {
			names = append(names, value.Name)
		}
		require.Equal(t, row[2], strings.Join(names, " "), row[1])
	}
}
