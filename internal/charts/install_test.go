package charts

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var (
	hubPlane    = localplane.Shared{Options: localplane.Options{Name: "chart-hub"}}
	memberPlane = localplane.Shared{Options: localplane.Options{Name: "chart-member"}}
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	var err error
	if programs.folder, err = os.MkdirTemp("", "muster-programs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := localplane.Run(m, &hubPlane, &memberPlane, &initPlane, &registerPlane)
	if err := os.RemoveAll(programs.folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const timeout = 3 * time.Minute

// TestCharts_Install installs both charts and runs their programs. The values in the Secret of a JoinToken register the
// member. An upgrade with the same values changes nothing. Uninstalling the charts removes their objects, but not
// the objects of Works and not the data of the hub.
func TestCharts_Install(t *testing.T) {
	hubConfig, memberConfig := hubPlane.ForTest(t).Config(), memberPlane.ForTest(t).Config()
	onHub, onMember := newClient(t, hubConfig), newClient(t, memberConfig)
	hubBinary, agentBinary := build(t, "hub"), build(t, "agent")

	hub := newHelm(t, hubConfig, hubChart)
	hubValues := values{"apiServerURL": hubConfig.Host, "apiServerCA": string(hubConfig.CAData)}
	hubObjects := hub.install(hubValues)
	hubPod := &pod{t: t, binary: hubBinary, admin: hubConfig}
	hubPod.start(find(hubObjects, "Deployment", hubChart))
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "edge"},
		Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true, Labels: map[string]string{"region": "north"}},
	}
	secret := waitForSecret(t, onHub, token)

	agentValues, err := chartutil.ReadValues(secret.Data[registration.ValuesKey])
	require.NoError(t, err)
	require.Equal(t, hubConfig.Host, agentValues["apiServerURL"])
	rendered, err := template(t, agentChart, agentValues)
	require.NoError(t, err)
	require.Equal(t, string(secret.Data[registration.BootstrapKey]), bootstrapIn(t, rendered), "the same join.yaml")

	const short = "abc123.0123456789abcdef"
	rendered, err = template(t, agentChart, values{
		"apiServerURL": agentValues["apiServerURL"], "apiServerCA": agentValues["apiServerCA"], "token": short,
	})
	require.NoError(t, err)
	bootstrap, err := registration.ParseBootstrap([]byte(bootstrapIn(t, rendered)))
	require.NoError(t, err, "a bootstrap token needs no other value")
	require.Equal(t, "bootstrap-token-abc123", bootstrap.TokenName)

	agent := newHelm(t, memberConfig, agentChart)
	agentObjects := agent.install(agentValues)
	agentPod := &pod{t: t, binary: agentBinary, admin: memberConfig}
	agentPod.start(find(agentObjects, "Deployment", agentChart))
	cluster := waitForMember(t, onHub, v1alpha1.ConditionJoined, "")
	require.Equal(t, "north", cluster.Labels["region"])

	// The agent removes the credential. An upgrade with the same values does not write the credential again. An upgrade
	// with another expiration time does.
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "muster-bootstrap"}}
	requireCredential := func(exists bool) {
		t.Helper()
		mustertest.Eventually(t, timeout, fmt.Sprintf("the Secret has a credential: %t", exists), func() error {
			if err := onMember.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			if _, has := stored.Data[registration.BootstrapKey]; has != exists {
				return fmt.Errorf("the Secret has %d keys", len(stored.Data))
			}
			return nil
		})
	}
	requireCredential(false)
	requireUnchanged(t, onHub, hubObjects, func() { hub.upgrade(hubValues) })
	requireUnchanged(t, onMember, agentObjects, func() { agent.upgrade(agentValues) })

	// An upgrade adds the component apply-anything, and a Work is applied.
	agentValues["applyAnything"] = true
	agent.upgrade(agentValues)
	require.NoError(t, onHub.Create(t.Context(), &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: "settings"},
		Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},
				"data":{"a":"b"}}`),
		}}}},
	}))
	settings := &corev1.ConfigMap{}
	mustertest.Eventually(t, timeout, "the Work is applied", func() error {
		return onMember.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "settings"}, settings)
	})

	agentPod.stop()
	requireCredential(false)
	agentValues["tokenExpirationTime"] = "2040-01-01T00:00:00Z"
	agentObjects = agent.upgrade(agentValues)
	requireCredential(true)
	agentPod.start(find(agentObjects, "Deployment", agentChart))
	requireCredential(false)

	// Without its permissions the agent ends. The objects of the Work and their inventory stay.
	agentPod.mayExit = true
	agent.uninstall()
	waitForDeletion(t, onMember, agentObjects)
	agentPod.stop()
	requireKept(t, onMember, settings)

	// The same values install the agent again, and the member is the same.
	agentObjects = agent.install(agentValues)
	agentPod = &pod{t: t, binary: agentBinary, admin: memberConfig}
	agentPod.start(find(agentObjects, "Deployment", agentChart))
	again := waitForMember(t, onHub, v1alpha1.ConditionHealthy, cluster.Name)
	require.Equal(t, cluster.UID, again.UID)
	requireKept(t, onMember, settings)

	hubPod.stop()
	hub.uninstall()
	waitForDeletion(t, onHub, hubObjects)
	require.NoError(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(token), token))
	require.Nil(t, token.DeletionTimestamp, "JoinTokens and the identity of the hub stay")
	require.NoError(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	require.Nil(t, cluster.DeletionTimestamp)
	require.NotNil(t, find(hub.install(hubValues), "Namespace", membership.RegistrationNamespace))

	// A namespace that was not created by the chart is used and not changed.
	hub.uninstall()
	registration := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}}
	require.NoError(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(registration), registration))
	registration.Labels, registration.Annotations = nil, nil
	require.NoError(t, onHub.Update(t.Context(), registration))
	hubObjects = hub.install(hubValues)
	require.Nil(t, find(hubObjects, "Namespace", membership.RegistrationNamespace))
	version := registration.ResourceVersion
	require.NoError(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(registration), registration))
	require.Equal(t, version, registration.ResourceVersion)
	hub.uninstall()
	waitForDeletion(t, onHub, hubObjects)
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(
		clientgoscheme.AddToScheme(scheme), assembly.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
	))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// waitForSecret creates a JoinToken once the hub has installed the definition, and waits for its Secret.
func waitForSecret(t *testing.T, c client.Client, token *v1alpha1.JoinToken) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	mustertest.Eventually(t, timeout, "the JoinToken has a Secret", func() error {
		if token.UID == "" {
			if err := c.Create(t.Context(), token); err != nil {
				return err
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(token), secret); err != nil {
			return err
		}
		if len(secret.Data[registration.ValuesKey]) == 0 {
			return fmt.Errorf("Secret %s has no values", secret.Name)
		}
		return nil
	})
	return secret
}

// waitForMember waits until the one MemberCluster has a condition.
func waitForMember(t *testing.T, c client.Client, condition, name string) *v1alpha1.MemberCluster {
	t.Helper()
	var found v1alpha1.MemberCluster
	mustertest.Eventually(t, timeout, "the member is "+condition, func() error {
		list := &v1alpha1.MemberClusterList{}
		if err := c.List(t.Context(), list); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("the hub has %d MemberClusters", len(list.Items))
		}
		found = list.Items[0]
		if !meta.IsStatusConditionTrue(found.Status.Conditions, condition) {
			return fmt.Errorf("MemberCluster %s: %+v", found.Name, found.Status.Conditions)
		}
		return nil
	})
	if name != "" {
		require.Equal(t, name, found.Name)
	}
	return &found
}

// requireUnchanged checks that an action writes no object. The controllers of Kubernetes write the status meanwhile.
func requireUnchanged(t *testing.T, c client.Client, objects []*unstructured.Unstructured, act func()) {
	t.Helper()
	read := func() map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, object := range objects {
			live := object.DeepCopy()
			err := c.Get(t.Context(), client.ObjectKeyFromObject(object), live)
			require.NoError(t, err, "%s %s", object.GetKind(), object.GetName())
			if _, status := live.Object["status"]; status {
				delete(live.Object, "status")
				live.SetResourceVersion("")
				live.SetManagedFields(nil)
				live.SetAnnotations(nil) // such as deployment.kubernetes.io/revision
			}
			out[object.GetKind()+" "+object.GetName()] = live.Object
		}
		return out
	}
	before := read()
	act()
	require.Equal(t, before, read())
}

// waitForDeletion waits until the objects of a chart are deleted, except those that Helm keeps.
func waitForDeletion(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		live := object.DeepCopy()
		if object.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), live))
			require.Nil(t, live.GetDeletionTimestamp(), "%s %s is kept", object.GetKind(), object.GetName())
			continue
		}
		mustertest.Eventually(t, timeout, object.GetKind()+" "+object.GetName()+" is deleted", func() error {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(object), live)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s %s exists: %w", object.GetKind(), object.GetName(), err)
		})
	}
}

// requireKept checks that an object of a Work, its inventory and the definition of AppliedWork exist unchanged.
func requireKept(t *testing.T, c client.Client, want *corev1.ConfigMap) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "appliedworks.work.muster.dev"}, definition))
	require.Nil(t, definition.DeletionTimestamp, "Helm does not delete the definition")
	inventories := &workv1alpha1.AppliedWorkList{}
	require.NoError(t, c.List(t.Context(), inventories))
	require.Len(t, inventories.Items, 1)
	require.Nil(t, inventories.Items[0].DeletionTimestamp)
	live := &corev1.ConfigMap{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(want), live))
	require.Nil(t, live.DeletionTimestamp)
	require.Equal(t, want.UID, live.UID)
	require.Equal(t, want.Data, live.Data)
}
