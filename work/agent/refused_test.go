package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestRefused checks invalid manifests, each next to a valid one.
func TestRefused(t *testing.T) {
	for i, test := range []struct {
		reason    string
		manifests []string
		options   string
		want      string // the beginning of the reason and message of the manifest
	}{
		{"unknown kind",
			[]string{"{apiVersion: example.com/v1, kind: Wheel, metadata: {name: x, namespace: NS}}"}, "",
			"UnknownKind: The member does not serve kind Wheel (example.com/v1). Install its CustomResourceDefinition on " +
				"the member, or use a version that the member serves."},
		{"group exceeds the limit of a status",
			[]string{"{apiVersion: " + strings.Repeat("g", 300) + "/v1, kind: Wheel, metadata: {name: x}}"}, "",
			"Invalid: spec.manifests[0].apiVersion: Invalid value: "},
		{"name exceeds the limit of a status",
			[]string{configMap(strings.Repeat("n", 5000), "{}")}, "",
			"Invalid: spec.manifests[0].metadata.name: Too long: "},
		{"list kind", []string{"{apiVersion: v1, kind: ConfigMapList, metadata: {name: x}, items: []}"}, "",
			"Invalid: spec.manifests[0].items: Forbidden: a list is no object: put its items into spec.manifests"},
		{"duplicate object", []string{configMap("x", "{}"), configMap("x", "{a: b}")}, "", `Invalid: spec.manifests[0]: ` +
			`Duplicate value: "ConfigMap NS/x": the manifest has the object of spec.manifests[1] as well: remove one of them`},
		{"invalid CEL expression", []string{configMap("x", "{}")}, "{select: {name: x}, readiness: {cel: 'object.'}}",
			"Invalid: readiness.cel: line 1, column 8: Syntax error: no viable alternative at input '.'"},
		{"invalid JSONPath", []string{configMap("x", "{}")},
			"{select: {name: x}, feedback: [{name: a, jsonPath: '.data..k'}]}", "Invalid: feedback a: jsonPath: "},
		{"invalid path in ignoredFields", []string{configMap("x", "{}")}, "{select: {name: x}, ignoredFields: [data.k]}",
			`Invalid: ignoredFields: field path "data.k", position 0: expected a field such as .spec`},
		{"missing metadata.namespace", []string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"}, "",
			"Invalid: metadata.namespace: is required because ConfigMap is namespaced"},
		{"namespace does not exist",
			[]string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: nowhere}}"}, "",
			"Failed: The object was not found. Check that namespace nowhere exists on the member: " +
				"namespaces \"nowhere\" not found"},
		{"API server rejects the object", []string{"{apiVersion: v1, kind: Service, metadata: {name: x, namespace: NS}, " +
			"spec: {ports: [{port: 99999}]}}"}, "", "Rejected: The API server of the member rejected the object: Service " +
			"\"x\" is invalid: [spec.ports[0].port: Invalid value: 99999"},
		{"message of an invalid Secret contains no value",
			[]string{"{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: " +
				"NS}, data: {password: 'hunter2!'}}"}, "", "Rejected: The API server of the member rejected the object: some " +
				"values are invalid, such as base64 in data"},
		{"unknown field",
			[]string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: NS}, daat: {}}"}, "",
			"Rejected: The API server of the member rejected the object: failed to create typed patch object"},
	} {
		run := func(t *testing.T, f *fixture) {
			f.start()
			good := fmt.Sprintf("good%d", i)
			spec := "{" + manifests(append(test.manifests, configMap(good, "{k: v}"))...)
			if test.options != "" {
				spec += ", manifestOptions: [" + test.options + "]"
			}
			work := f.work(good, spec+"}")
			f.Eventually("the object is refused", func() error {
				if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
					return err
				}
				last := len(work.Spec.Manifests) - 1
				if len(work.Status.Manifests) <= last {
					return fmt.Errorf("no status yet")
				}
				bad, ok := work.Status.Manifests[0].Conditions[0], work.Status.Manifests[last].Conditions[0]
				got := strings.ReplaceAll(bad.Reason+": "+bad.Message, f.name, "NS")
				if !strings.HasPrefix(got, test.want) || bad.Status != "False" {
					return fmt.Errorf("want %q, got %q", test.want, got)
				}
				return equal("True", string(ok.Status))
			})
			require.Equal(t, "v", f.data(good, "k"))
			text, err := json.Marshal(work.Status)
			require.NoError(t, err)
			require.NotContains(t, string(text), "hunter2")
			f.delete(work)
			f.gone(work)
			require.Nil(t, f.read("ConfigMap", good))
		}
		t.Run(test.reason, func(t *testing.T) {
			// The member of these cases is a plane: the messages are those of its API server.
			if strings.HasPrefix(test.want, "Rejected: ") || strings.HasPrefix(test.want, "Failed: ") {
				t.Parallel()
				run(t, newFixtureWithMember(t))
				return
			}
			testkit.Virtual(t, func(t *testing.T) { run(t, newMemoryFixture(t)) })
		})
	}
}

// TestRefused_WorkTooLong checks that a Work which is too long is rejected, and that its existing objects stay: no user
// removed them from the Work.
func TestRefused_WorkTooLong(t *testing.T) { testkit.Virtual(t, testRefusedWorkTooLong) }

func testRefusedWorkTooLong(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	uid := f.read("ConfigMap", "b").GetUID()
	// The API server checks all limits except the limit of all manifests together.
	long := strings.Repeat("x", 400<<10)
	f.change(work, "{"+manifests(configMap("a", "{k: "+long+"}"), configMap("c", "{k: "+long+"}"))+"}")
	f.awaitStatus(work, "0/0 Applied=False/Invalid Available=False/NotApplied Progressing=False/AsDesired "+
		"Degraded=True/Invalid\n"+
		"The Work is not applied: "+fmt.Sprintf("spec.manifests: Too long: must have at most 786432 bytes as JSON, got %d: "+
		"split the Work into several", sizeOf(work)))
	require.Equal(t, uid, f.read("ConfigMap", "b").GetUID())
	require.Len(t, f.applied(work).Status.Resources, 2)
	f.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	f.ready(work)
	f.awaitObjects(work, "ConfigMap a w")
}

func sizeOf(work *v1alpha1.Work) int {
	n := 0
	for _, m := range work.Spec.Manifests {
		n += len(m.Raw)
	}
	return n
}

// TestSecrets_AreNotInStatus checks that no value of a Secret gets into a status, regardless of the requested feedback.
func TestSecrets_AreNotInStatus(t *testing.T) { testkit.Virtual(t, testSecretsAreNotInStatus) }

func testSecretsAreNotInStatus(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	work := f.work("shop", "{"+manifests(secret("s"))+`, apply: {drift: Report}, manifestOptions: [{select: {kind: Secret},
		readiness: {cel: 'object.data.password == "x"'}, feedback: [{name: all, jsonPath: .metadata.labels},
		{name: data, jsonPath: .data.password}]}]}`)
	f.Eventually("the status has one object and a message", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		return equal(true, len(work.Status.Manifests) == 1 && work.Status.Message != "")
	})
	t.Log(render(work.Status))
	work2 := f.work("drift", "{"+manifests(secret("t"))+", apply: {drift: Report}}")
	f.ready(work2)
	f.patch(f.read("Secret", "t"), "stringData: {password: swordfish}")
	f.Eventually("the status has one difference", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work2), work2); err != nil {
			return err
		}
		if len(work2.Status.Manifests) != 1 || len(work2.Status.Manifests[0].Diffs) != 1 {
			return fmt.Errorf("no difference yet: %s", render(work2.Status))
		}
		return equal("(redacted)", work2.Status.Manifests[0].Diffs[0].Found)
	})
	var all unstructured.UnstructuredList
	all.SetAPIVersion("work.muster.dev/v1alpha1")
	all.SetKind("WorkList")
	require.NoError(t, f.Client.List(context.Background(), &all, client.InNamespace(work.Namespace)))
	for _, each := range all.Items {
		text, err := json.Marshal(each.Object["status"])
		require.NoError(t, err)
		for _, secret := range []string{"hunter2", "swordfish", "aHVudGVyMg", "c3dvcmRmaXNo"} {
			require.NotContains(t, string(text), secret)
		}
	}
}
