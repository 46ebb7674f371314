package install_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
    x-kubernetes-preserve-unknown-fields: true}}}]
`

func parse(t *testing.T, text string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &out.Object))
	return out
}

// TestManifests checks that shared objects are used, and are removed neither for other owners nor while they are in
// use.
func TestManifests(t *testing.T) {
	testkit.Virtual(t, testManifests)
}

func testManifests(t *testing.T) {
	ctx, p := t.Context(), newMemory(t)
	server, ca := endpoint(p)
	c, err := client.New(p.Config(), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	lamp := parse(t, "{apiVersion: example.com/v1, kind: Lamp, metadata: {name: desk}}")
	installer := manifests(t, "1", parse(t, definition), lamp)
	bootstrap := &registration.Bootstrap{
		Server: server, CA: ca, Token: "token", TokenName: "token", Key: make([]byte, 32),
		Namespace: "muster-registration",
	}
	target := install.Target{Config: p.Config(), Bootstrap: bootstrap,
		Cluster: &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a"}}}
	require.NoError(t, installer.Install(ctx, target), "a custom resource can be applied together with "+
		"its definition")

	seen := versions(t, c)
	require.NoError(t, installer.Install(ctx, target))
	require.Equal(t, seen, versions(t, c), "a second installation changes nothing")

	other := target
	other.Cluster = &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: types.UID("uid-b")}}
	require.ErrorContains(t, installer.Install(ctx, other), "belongs to another installation")
	require.NoError(t, installer.Uninstall(ctx, other), "another installation has no objects")
	require.Equal(t, seen, versions(t, c))

	// Another object of the definition exists, so the definition is kept.
	theirs := parse(t, "{apiVersion: example.com/v1, kind: Lamp, metadata: {name: theirs}}")
	require.NoError(t, c.Create(ctx, theirs))
	require.NoError(t, installer.Uninstall(ctx, target))
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(lamp), lamp)))
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(theirs), theirs))
	require.NoError(t, installer.Uninstall(ctx, target), "a second removal has no effect")
	require.NoError(t, c.Delete(ctx, parse(t, definition)))
	require.NoError(t, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)))
}

// versions returns the resource versions of the installed objects.
func versions(t *testing.T, c client.Client) map[string]string {
	out := map[string]string{}
	for _, each := range []struct{ apiVersion, kind, name string }{
		{"v1", "Namespace", "testmanifests"}, {"v1", "ServiceAccount", "agent"}, {"v1", "ConfigMap", install.InventoryName},
		{"v1", "Secret", agent.DefaultBootstrapSecret}, {"rbac.authorization.k8s.io/v1", "ClusterRole", "testmanifests"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "lamps.example.com"}, {"example.com/v1", "Lamp", "desk"},
	} {
		object := &metav1.PartialObjectMetadata{}
		object.APIVersion, object.Kind = each.apiVersion, each.kind
		key := client.ObjectKey{Name: each.name}
		if each.apiVersion == "v1" && each.kind != "Namespace" {
			key.Namespace = "testmanifests"
		}
		require.NoError(t, c.Get(t.Context(), key, object), each.kind)
		out[each.kind] = object.ResourceVersion
	}
	return out
}

// TestPermissions checks that the roles contain no more permissions than necessary. All other tests show that they are
// sufficient.
func TestPermissions(t *testing.T) {
	h := startHub(t, plane.ForTest(t), install.Options{Installer: manifests(t, "1")})
	h.stop()
	c, err := client.New(h.user("muster-install", "rbac/role.yaml"), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	ctx := t.Context()
	for reason, err := range map[string]error{
		"list Secrets of connections": c.List(ctx, &corev1.SecretList{}, client.InNamespace("muster-connections")),
		"list Secrets of tokens": c.List(ctx, &corev1.SecretList{},
			client.InNamespace("muster-registration")),
		"create a MemberCluster": c.Create(ctx,
			&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "x"}}),
		"delete a MemberCluster": c.Delete(ctx,
			&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "x"}}),
		"delete a Membership": c.Delete(ctx,
			&v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "self"}}),
		"create a JoinToken in another namespace": c.Create(ctx,
			&v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: want Forbidden, got %v", reason, err)
	}
	require.NoError(t, c.List(ctx, &v1alpha1.MemberClusterList{}), "the role is bound")
}

// TestMissing checks that Missing returns nothing only when the workloads are rolled out as last applied.
func TestMissing(t *testing.T) {
	ctx, p := t.Context(), plane.ForTest(t)
	c, err := client.New(p.Config(), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	with := func(replicas string) *install.Manifests {
		return manifests(t, replicas, parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: testmissing, name: agent}
spec:
  replicas: `+replicas+`
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: agent}]}}
`))
	}
	bootstrap := &registration.Bootstrap{
		Server: p.Config().Host, CA: p.Config().CAData, Token: "token", TokenName: "token", Key: make([]byte, 32),
		Namespace: "muster-registration",
	}
	target := install.Target{Config: p.Config(), Bootstrap: bootstrap,
		Cluster: &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid-m"}}}
	requireMissing := func(description, want string) {
		t.Helper()
		mustertest.Eventually(t, timeout, description, func() error {
			if got, err := with("0").Missing(ctx, target); err != nil || !strings.Contains(got, want) || want == "" &&
				got != "" {
				return fmt.Errorf("%q (%w)", got, err)
			}
			return nil
		})
	}

	requireMissing("the manifests have no replicas and are not installed", "")
	require.NoError(t, with("0").Install(ctx, target))
	requireMissing("the workload has no replicas", "")
	require.NoError(t, with("1").Install(ctx, target))
	requireMissing("the pod cannot be scheduled", "testmissing/agent on the member is not rolled out: Available: 0/1")
	require.NoError(t, with("0").Install(ctx, target))
	requireMissing("the last applied workload has no replicas", "")
	require.NoError(t, c.Delete(ctx,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "testmissing", Name: "agent"}}))
	requireMissing("the Deployment was deleted", "testmissing/agent does not exist on the member")
	require.NoError(t, with("0").Uninstall(ctx, target))
}
