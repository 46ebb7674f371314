package agent_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestAwkward checks a Work of each file in testdata/awkward: all objects are applied, and the agent then writes
// nothing, also not after a restart. Package apply tests the same manifests without an agent.
func TestAwkward(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/awkward/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var manifests []json.RawMessage
			f := newFixtureWithMember(t)
			require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "NS", f.name)), &manifests))
			f.requireNoMoreWrites(manifests)
		})
	}
	t.Run("definition", func(t *testing.T) { // of the size of cert-manager's, with a resource in each of two versions
		t.Parallel()
		f := newFixtureWithMember(t)
		group := f.name + ".example.org"
		var fields []string
		for i := range 250 {
			const property = `"f%d": {"type": "object", "description": %q,
  "properties": {"a": {"type": "string", "enum": ["x", "y"]}}}`
			fields = append(fields, fmt.Sprintf(property, i, strings.Repeat("description ", 50)))
		}
		schema := `{"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "object"},
  "spec": {"type": "object", "properties": {` + strings.Join(fields, ", ") + `}}}}}`
		var definition, current, former json.RawMessage
		for into, text := range map[*json.RawMessage]string{
			&definition: `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "awkwards.GROUP", "creationTimestamp": null},
  "spec": {"group": "GROUP", "scope": "Namespaced", "preserveUnknownFields": false,
  "names": {"plural": "awkwards", "kind": "Awkward", "shortNames": [], "categories": []},
  "conversion": {"strategy": "None"}, "versions": [
  {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": SCHEMA},
  {"name": "v1beta1", "served": true, "storage": false, "subresources": {"status": {}}, "schema": SCHEMA}]},
  "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []}}`,
			&current: `{"apiVersion": "GROUP/v1", "kind": "Awkward", "metadata": {"name": "new", "namespace": "NS"},
  "spec": {"f1": {"a": "x"}, "f2": {}}}`,
			&former: `{"apiVersion": "GROUP/v1beta1", "kind": "Awkward", "metadata": {"name": "old", "namespace": "NS"},
  "spec": {"f1": {"a": "y"}}}`,
		} {
			*into = json.RawMessage(strings.NewReplacer("GROUP", group, "NS", f.name, "SCHEMA", schema).Replace(text))
		}
		require.Greater(t, len(definition), 300<<10)
		f.requireNoMoreWrites([]json.RawMessage{definition, current, former})
	})
}

// requireNoMoreWrites lets an agent apply manifests, and checks that it then stops writing.
func (f *fixture) requireNoMoreWrites(manifests []json.RawMessage) {
	f.T.Helper()
	t := f.T
	stop := f.start()
	work := f.spec("awkward", "{}")
	for _, manifest := range manifests {
		work.Spec.Manifests = append(work.Spec.Manifests, rawManifest(string(manifest)))
	}
	sentinel := asJSON(t, f.manifest(configMap("sentinel", "{k: v}")))
	work.Spec.Manifests = append(work.Spec.Manifests, rawManifest(string(sentinel)))
	require.NoError(t, f.Client.Create(t.Context(), work))
	f.Eventually("the Work is applied", func() error {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if c := condition(work, v1alpha1.ConditionApplied); c == nil || c.Status != "True" {
			return fmt.Errorf("not applied:\n%s", render(work.Status))
		}
		return nil
	})
	f.controllersDone(work)
	f.awaitNoWrites()
	<-time.After(5 * time.Second)
	hub, member := f.toHub.take(), f.toMember.take()
	require.Empty(t, writes(member), "writes to the member in a window")
	require.Empty(t, writes(hub), "writes to the hub in a window")

	stop()
	f.awaitNoWrites()
	f.start()
	f.patch(f.read("ConfigMap", "sentinel"), "data: {k: edited}")
	f.Eventually("the agent has reconciled", func() error { return equal("v", f.data("sentinel", "k")) })
	hub, member = f.awaitNoWrites()
	require.Equal(t, []string{"PATCH configmaps sentinel"}, writes(member), "writes to the member after a restart")
	others := slices.DeleteFunc(writes(hub), func(r string) bool { return strings.HasPrefix(r, "POST events") })
	require.Empty(t, others, "writes to the hub after a restart")
	f.Eventually("an Event reports the heal", func() error {
		return equal("ConfigMap "+f.name+"/sentinel was modified on the member and has been restored.",
			strings.Join(f.healed(), "\n"))
	})
	f.delete(work)
	f.gone(work)
}

// controllersDone waits for late writes of the controllers of Kubernetes, which the agent reports to the hub: the
// first status of autoscalers after 15 seconds, the binding of volumes, and the deletion of Jobs with a TTL.
func (f *fixture) controllersDone(work *v1alpha1.Work) {
	f.T.Helper()
	decoded, _ := work.Spec.Decode()
	for _, manifest := range decoded {
		live := manifest.Object.DeepCopy()
		done := func(error) error { return nil }
		_, ttl, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished")
		switch {
		case manifest.Kind == "HorizontalPodAutoscaler":
			live.SetAPIVersion("autoscaling/v2") // earlier versions have no conditions
			done = func(err error) error {
				if conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions"); len(conditions) == 0 {
					return cmp.Or(err, fmt.Errorf("autoscaler %s has no conditions yet", live.GetName()))
				}
				return nil
			}
		case manifest.Kind == "PersistentVolume", manifest.Kind == "PersistentVolumeClaim" && bound(live):
			done = func(err error) error {
				phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
				if phase == "" || phase == "Pending" || phase == "Available" {
					return cmp.Or(err, fmt.Errorf("%s %s is not bound yet", manifest.Kind, live.GetName()))
				}
				return nil
			}
		case manifest.Kind == "Job" && ttl:
			done = func(err error) error {
				if err == nil {
					return fmt.Errorf("job %s is not deleted yet", live.GetName())
				}
				return client.IgnoreNotFound(err)
			}
		}
		f.Eventually("the controllers have written "+live.GetKind()+" "+live.GetName(), func() error {
			return done(f.member.Get(f.T.Context(), client.ObjectKeyFromObject(live), live))
		})
	}
}

// bound reports whether a claim names its volume or reports that it is bound, so that its phase changes in any case.
func bound(claim *unstructured.Unstructured) bool {
	volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	return volume != "" || claim.GetAnnotations()["pv.kubernetes.io/bind-completed"] != ""
}

// awaitNoWrites waits until there was no write for a second, and returns the requests until then. Controllers of
// Kubernetes may still write statuses, which the agent reads.
func (f *fixture) awaitNoWrites() (hub, member []string) {
	f.T.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		<-time.After(time.Second)
		h, m := f.toHub.take(), f.toMember.take()
		hub, member = append(hub, h...), append(member, m...)
		if len(writes(h))+len(writes(m)) == 0 {
			return hub, member
		}
	}
	f.T.Fatalf("the writes do not end: hub %v, member %v", hub, member)
	return nil, nil
}

func asJSON(t testing.TB, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return data
}
