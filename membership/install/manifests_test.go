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
	ctx, p := t.Context(), planes.ForTest(t)
	c, err := client.New(p.Config(), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	lamp := parse(t, "{apiVersion: example.com/v1, kind: Lamp, metadata: {name: desk}}")
	installer := manifests(t, "1", parse(t, definition), lamp)
	bootstrap := &registration.Bootstrap{
		Server: p.Config().Host, CA: p.Config().CAData, Token: "token", TokenName: "token", Key: make([]byte, 32),
		Namespace: "muster-registration",
	}
	target := install.Target{Config: p.Config(), Bootstrap: bootstrap,
		Cluster: &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a"}}}
	require.NoError(t, installer.Install(ctx, target), "a custom resource can be among what is applied with its "+
		"definition")

	seen := versions(t, c)
	require.NoError(t, installer.Install(ctx, target))
	require.Equal(t, seen, versions(t, c), "a second time changes nothing")

	other := target
	other.Cluster = &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: types.UID("uid-b")}}
	require.ErrorContains(t, installer.Install(ctx, other), "belongs to another installation")
	require.NoError(t, installer.Uninstall(ctx, other), "it has nothing there")
	require.Equal(t, seen, versions(t, c))

	// Another object of the definition exists, so the definition stays when ours is removed.
	theirs := parse(t, "{apiVersion: example.com/v1, kind: Lamp, metadata: {name: theirs}}")
	require.NoError(t, c.Create(ctx, theirs))
	require.NoError(t, installer.Uninstall(ctx, target))
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(lamp), lamp)))
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(theirs), theirs))
	require.NoError(t, installer.Uninstall(ctx, target), "twice is harmless")
	require.NoError(t, c.Delete(ctx, parse(t, definition)))
	require.NoError(t, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)))
}

// versions returns the resource versions of the installed objects.
func versions(t *testing.T, c client.Client) map[string]string {
	out := map[string]string{}
	for _, one := range []struct{ apiVersion, kind, name string }{
		{"v1", "Namespace", "testmanifests"}, {"v1", "ServiceAccount", "agent"}, {"v1", "ConfigMap", install.InventoryName},
		{"v1", "Secret", agent.DefaultBootstrapSecret}, {"rbac.authorization.k8s.io/v1", "ClusterRole", "testmanifests"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "lamps.example.com"}, {"example.com/v1", "Lamp", "desk"},
	} {
		object := &metav1.PartialObjectMetadata{}
		object.APIVersion, object.Kind = one.apiVersion, one.kind
		key := client.ObjectKey{Name: one.name}
		if one.apiVersion == "v1" && one.kind != "Namespace" {
			key.Namespace = "testmanifests"
		}
		require.NoError(t, c.Get(t.Context(), key, object), one.kind)
		out[one.kind] = object.ResourceVersion
	}
	return out
}

// TestPermissions checks that the roles contain no more permissions than necessary. All other tests show that they are
// sufficient.
func TestPermissions(t *testing.T) {
	h := startHub(t, install.Options{Installer: manifests(t, "1")})
	h.stop()
	c, err := client.New(h.user("muster-install", "rbac/role.yaml"), client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	ctx := t.Context()
	for reason, err := range map[string]error{
		"Secrets of connections are the fleet's": c.List(ctx, &corev1.SecretList{}, client.InNamespace("muster-connections")),
		"nor does it list those of tokens": c.List(ctx, &corev1.SecretList{},
			client.InNamespace("muster-registration")),
		"members are made by others": c.Create(ctx,
			&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "x"}}),
		"and deleted by others": c.Delete(ctx,
			&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "x"}}),
		"Memberships are the hub's": c.Delete(ctx,
			&v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "self"}}),
		"tokens elsewhere are none of its": c.Create(ctx,
			&v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", reason, err)
	}
	require.NoError(t, c.List(ctx, &v1alpha1.MemberClusterList{}), "it is bound at all")
}

// TestMissing checks that Missing returns nothing only when the workloads are rolled out as last applied.
func TestMissing(t *testing.T) {
	ctx, p := t.Context(), planes.ForTest(t)
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
	until := func(what, says string) {
		t.Helper()
		mustertest.Eventually(t, timeout, what, func() error {
			if got, err := with("0").Missing(ctx, target); err != nil || !strings.Contains(got, says) || says == "" &&
				got != "" {
				return fmt.Errorf("%q (%w)", got, err)
			}
			return nil
		})
	}

	until("nothing is to run", "")
	require.NoError(t, with("0").Install(ctx, target))
	until("all that is to run does", "")
	require.NoError(t, with("1").Install(ctx, target))
	until("there is no node for it", "testmissing/agent on the member is not rolled out: Available: 0/1")
	require.NoError(t, with("0").Install(ctx, target))
	until("that runs which was installed last", "")
	require.NoError(t, c.Delete(ctx,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "testmissing", Name: "agent"}}))
	until("a user has deleted it", "testmissing/agent does not exist on the member")
	require.NoError(t, with("0").Uninstall(ctx, target))
}
