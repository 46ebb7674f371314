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

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// exportable are objects to which a cluster adds fields that belong to the cluster.
var exportable = []string{
	"{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: NS}, spec: {suspend: true, " +
		"template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
	"{apiVersion: v1, kind: Service, metadata: {name: web, namespace: NS}, spec: {selector: {a: b}, ports: [{port: 80}]}}",
	"{apiVersion: v1, kind: Service, metadata: {name: headless, namespace: NS}, " +
		"spec: {clusterIP: None, selector: {a: b}}}",
	"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: NS, " +
		"annotations: {pv.kubernetes.io/bind-completed: 'yes', pv.kubernetes.io/bound-by-controller: 'yes'}}, " +
		"spec: {accessModes: [ReadWriteOnce], storageClassName: none, volumeName: pvc-of-the-source, " +
		"resources: {requests: {storage: 1Mi}}}}",
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}, " +
		"spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
		"spec: {containers: [{name: c, image: i}]}}}}",
	"{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: NS}}",
	"{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: token, namespace: NS, " +
		"annotations: {kubernetes.io/service-account.name: robot}}}",
}

// TestExported checks a Work of objects that were exported from another namespace, as by kubectl get -o yaml: the
// agent stops writing, also after a restart, and fields of the source are not applied.
func TestExported(t *testing.T) {
	t.Parallel()
	f := newFixtureWithMember(t)
	source := f.name + "-source"
	f.create(f.member, "{apiVersion: v1, kind: Namespace, metadata: {name: "+source+"}}")
	var texts []string
	ids := map[string]*unstructured.Unstructured{}
	for _, text := range exportable {
		object := f.create(f.member, strings.ReplaceAll(text, "namespace: NS", "namespace: "+source))
		f.Eventually("the cluster has added its fields to "+object.GetKind()+" "+object.GetName(), func() error {
			return f.exportOf(object)
		})
		object.SetNamespace(f.name)
		data, err := json.Marshal(object)
		require.NoError(t, err)
		texts = append(texts, string(data))
		ids[object.GetKind()+" "+object.GetName()] = object
	}
	rootCA := f.manifest("{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}")
	rootCA.SetNamespace(source)
	f.Eventually("the ConfigMap of the root CA exists", func() error {
		return f.member.Get(context.Background(), client.ObjectKeyFromObject(rootCA), rootCA)
	})
	rootCA.SetNamespace(f.name)
	data, err := json.Marshal(rootCA)
	require.NoError(t, err)
	texts = append(texts, string(data))

	stop := f.start()
	work := f.spec("exported", "{}")
	for _, text := range texts {
		work.Spec.Manifests = append(work.Spec.Manifests, rawManifest(text))
	}
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
	warning := work.Status.Manifests[1].Conditions[0].Message
	require.Contains(t, warning, "exported from a cluster")
	require.Contains(t, warning, ".spec.clusterIP, .spec.clusterIPs")
	require.Empty(t, work.Status.Manifests[2].Conditions[0].Message, "clusterIP None is kept without a warning")

	live := func(kind, name string) *unstructured.Unstructured {
		exported := ids[kind+" "+name]
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(exported.GroupVersionKind())
		require.NoError(t, f.member.Get(t.Context(), client.ObjectKeyFromObject(exported), found))
		return found
	}
	nested := func(u *unstructured.Unstructured, path ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, path...)
		return value
	}
	require.NotEqual(t, ids["Job job"].GetUID(), live("Job", "job").GetUID())
	uid := []string{"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}
	require.Equal(t, string(live("Job", "job").GetUID()), nested(live("Job", "job"), uid...))
	address := []string{"spec", "clusterIP"}
	require.NotEqual(t, nested(ids["Service web"], address...), nested(live("Service", "web"), address...))
	require.Equal(t, "None", nested(live("Service", "headless"), "spec", "clusterIP"))
	require.Empty(t, nested(live("PersistentVolumeClaim", "data"), "spec", "volumeName"))
	require.NotContains(t, live("PersistentVolumeClaim", "data").GetAnnotations(), "pv.kubernetes.io/bind-completed")
	f.Eventually("the agent keeps the annotation of the deployment controller", func() error {
		return equal("1", live("Deployment", "web").GetAnnotations()["deployment.kubernetes.io/revision"])
	})
	token := []string{"data", "token"}
	f.Eventually("the Secret has the token of the account in this namespace", func() error {
		if nested(live("Secret", "token"), token...) == "" {
			return fmt.Errorf("the Secret has no token yet")
		}
		return nil
	})
	require.NotEqual(t, nested(ids["Secret token"], token...), nested(live("Secret", "token"), token...))
	root := findManifestCondition(work, len(texts)-1, v1alpha1.ConditionApplied)
	require.Equal(t, v1alpha1.ReasonExists, root.Reason)
	require.Contains(t, root.Message, "Kubernetes publishes this ConfigMap in every namespace")

	f.awaitNoRequests()
	stop()
	f.awaitNoRequests()
	f.start()
	f.patch(live("Service", "web"), "spec: {selector: {a: edited}}") // proves that the agent has reconciled
	f.Eventually("Service web is healed", func() error {
		return equal("b", nested(live("Service", "web"), "spec", "selector", "a"))
	})
	_, member := f.awaitNoRequests()
	require.Equal(t, []string{"PATCH services web"}, writes(member), "the heal is the only write after the restart")
}

// exportOf reads an object after the cluster has added its fields.
func (f *fixture) exportOf(object *unstructured.Unstructured) error {
	if err := f.member.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	if object.GetKind() == "Deployment" && object.GetAnnotations()["deployment.kubernetes.io/revision"] == "" {
		return fmt.Errorf("the Deployment has no revision yet")
	}
	if data, _, _ := unstructured.NestedMap(object.Object, "data"); object.GetKind() == "Secret" && data["token"] == nil {
		return fmt.Errorf("the Secret has no token yet")
	}
	return nil
}

// rawManifest returns a manifest as JSON.
func rawManifest(text string) (m v1alpha1.Manifest) {
	m.Raw = []byte(text)
	return m
}
