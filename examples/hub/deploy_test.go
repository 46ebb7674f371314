package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/clusterprofile"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const timeLimit = 2 * time.Minute

// TestDeployment applies the manifests in deploy/hub to a control plane and runs this program twice, as the Deployment
// would: with its arguments, and with the credentials of its ServiceAccount. All parts of the hub act on their objects,
// and the second replica takes over from the first.
func TestDeployment(t *testing.T) {
	plane := localplane.ForTest(t, localplane.Options{Name: "deployed-hub"})
	scheme := runtime.NewScheme()
	require.NoError(t, assembly.AddToScheme(scheme))
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	const server = "https://hub.example.com:6443"
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(caFile, plane.Config().CAData, 0o600))
	args := append(applyManifests(t, c), "--api-server-url="+server, "--api-server-ca-file="+caFile)

	binary := filepath.Join(t.TempDir(), "hub")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(output))
	config := accountConfig(t, c, plane)
	first := start(t, "first", binary, config, args)
	leader := waitForLeader(t, c, "")
	start(t, "second", binary, config, args)
	allPartsAct(t, c, "apps")
	secret := &corev1.Secret{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: "apps"},
		secret))
	require.Contains(t, string(secret.Data[registration.BootstrapKey]), "server: "+server)

	first.stop()
	waitForLeader(t, c, leader)
	allPartsAct(t, c, "more-apps")
}

// TestPermissions checks the actions that the ServiceAccount of the hub must not perform, and those that the aggregated
// roles allow to users.
func TestPermissions(t *testing.T) {
	plane := localplane.ForTest(t, localplane.Options{Name: "hub-permissions"})
	scheme := runtime.NewScheme()
	require.NoError(t, assembly.AddToScheme(scheme))
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	objects, err := deploy.Hub()
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, c.Create(t.Context(), object), "%s %s", object.GetKind(), object.GetName())
	}
	account := "system:serviceaccount:muster-system:muster-hub"
	for _, test := range []struct {
		reason, user, verb, group, resource string
		allowed                             bool
	}{
		{"the hub reads MemberClusters", account, "list", membershipv1alpha1.GroupVersion.Group, "memberclusters", true},
		{"the hub creates definitions", account, "create", "apiextensions.k8s.io", "customresourcedefinitions", true},
		{
			"the hub updates its own definitions", account, "patch", "apiextensions.k8s.io",
			"customresourcedefinitions/works.work.muster.dev", true,
		},
		{
			"the hub updates no other definition", account, "patch", "apiextensions.k8s.io",
			"customresourcedefinitions/clusters.cluster.x-k8s.io", false,
		},
		{"the hub deletes no definition", account, "delete", "apiextensions.k8s.io", "customresourcedefinitions", false},
		{"the hub reads no ConfigMap without an additional role", account, "list", "", "configmaps", false},
		{"the hub reads no Secret of other namespaces", account, "list", "", "secrets", false},
		{"the hub creates no ClusterRoleBinding", account, "create", "rbac.authorization.k8s.io", "clusterrolebindings",
			false},
		{"a viewer lists Placements", "viewer", "list", placementv1alpha1.GroupVersion.Group, "placements", true},
		{"a viewer reads no JoinToken", "viewer", "get", membershipv1alpha1.GroupVersion.Group, "jointokens", false},
		{"an editor creates no Placement by default", "editor", "create", placementv1alpha1.GroupVersion.Group, "placements",
			false},
	} {
		for user, role := range map[string]string{"viewer": "view", "editor": "edit"} {
			if test.user == user {
				mustertest.Eventually(t, timeLimit, "role "+role+" is aggregated and bound", func() error {
					return bind(t, c, user, role)
				})
			}
		}
		check := func() bool {
			resource, name, _ := strings.Cut(test.resource, "/") // Without a name: every object.
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: test.user, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: test.verb, Group: test.group, Resource: resource, Name: name,
				},
			}}
			require.NoError(t, c.Create(t.Context(), review))
			return review.Status.Allowed
		}
		if test.allowed {
			mustertest.Eventually(t, timeLimit, test.reason, func() error {
				if !check() {
					return fmt.Errorf("%s cannot %s %s", test.user, test.verb, test.resource)
				}
				return nil
			})
		} else {
			require.False(t, check(), test.reason)
		}
	}
}

// bind binds a ClusterRole of Kubernetes to a user, after the controller manager has aggregated muster's rules into
// view.
func bind(t *testing.T, c client.Client, user, role string) error {
	t.Helper()
	view := &unstructured.Unstructured{}
	view.SetAPIVersion("rbac.authorization.k8s.io/v1")
	view.SetKind("ClusterRole")
	if err := c.Get(t.Context(), client.ObjectKey{Name: "view"}, view); err != nil {
		return err
	}
	if rules, _, _ := unstructured.NestedSlice(view.Object, "rules"); !strings.Contains(fmt.Sprint(rules), "worksets") {
		return fmt.Errorf("ClusterRole view does not contain worksets")
	}
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": user},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"kind": "User", "name": user}},
	}}
	return client.IgnoreAlreadyExists(c.Create(t.Context(), binding))
}

// applyManifests creates the objects of deploy/hub, and returns the arguments of the Deployment's container. No kubelet
// runs here, so the ports of probes and metrics, which may be in use on this machine, become random ones.
func applyManifests(t *testing.T, c client.Client) (args []string) {
	t.Helper()
	objects, err := deploy.Hub("select-anything", "bootstrap-tokens", "cluster-profiles")
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, c.Create(t.Context(), object), "%s %s", object.GetKind(), object.GetName())
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		args, _, err = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		require.NoError(t, err)
	}
	ports := 0
	for i, arg := range args {
		if name, _, address := strings.Cut(arg, "-bind-address="); address {
			args[i] = name + "-bind-address=127.0.0.1:0"
			ports++
		}
	}
	require.Equal(t, 2, ports, "%v", args)
	require.True(t, slices.Contains(args, "--leader-elect"), "%v", args)
	return args
}

// accountConfig returns a client configuration with a token of the hub's ServiceAccount.
func accountConfig(t *testing.T, c client.Client, plane *localplane.Plane) *rest.Config {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "muster-hub"}}
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, c.SubResource("token").Create(t.Context(), account, request))
	config := rest.AnonymousClientConfig(plane.Config())
	config.BearerToken = request.Status.Token
	return config
}

// replica is a running process of this program.
type replica struct {
	stop func()
}

// start runs a replica until stop is called or the test ends. The test fails if a replica ends by itself.
func start(t *testing.T, name, binary string, config *rest.Config, args []string) *replica {
	t.Helper()
	content, err := localplane.Kubeconfig(config)
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, content, 0o600))
	var output bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE=muster-system")
	command.Stdout, command.Stderr = &output, &output
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	require.NoError(t, command.Start())
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	stop := sync.OnceFunc(func() {
		select {
		case err := <-exited:
			t.Errorf("replica %s ended by itself: %v", name, err)
		default:
			cancel()
			<-exited //nolint:errcheck // The test has requested the end.
		}
		if t.Failed() {
			t.Logf("replica %s:\n%s", name, output.String())
		}
	})
	t.Cleanup(func() { cancelAfter(stop, cancel) })
	return &replica{stop: stop}
}

func cancelAfter(stop func(), cancel context.CancelFunc) {
	stop()
	cancel()
}

// waitForLeader waits until the Lease of the hub has another holder than before, and returns it.
func waitForLeader(t *testing.T, c client.Client, before string) (holder string) {
	t.Helper()
	mustertest.Eventually(t, timeLimit, "a replica leads", func() error {
		lease := &coordinationv1.Lease{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "muster-system", Name: leaseName}, lease); err != nil {
			return err
		}
		if holder = ""; lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		if holder == "" || holder == before {
			return fmt.Errorf("the holder of the Lease is %q", holder)
		}
		return nil
	})
	return holder
}

// allPartsAct creates an object for each part of the hub, and waits until its controller has written the status.
func allPartsAct(t *testing.T, c client.Client, name string) {
	t.Helper()
	inNamespace := metav1.ObjectMeta{Namespace: name, Name: "shop"}
	token := &membershipv1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace,
		Name: name}}
	short := &membershipv1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace,
		Name: "bootstrap-token-" + (strings.ReplaceAll(name, "-", "") + "00")[:6]}}
	short.Spec.Type = membershipv1alpha1.JoinTokenBootstrapToken
	placement := &placementv1alpha1.Placement{ObjectMeta: inNamespace}
	set := &placementv1alpha1.WorkSet{ObjectMeta: inNamespace, Spec: placementv1alpha1.WorkSetSpec{
		Placements: []placementv1alpha1.PlacementReference{{Name: "shop"}},
		Resources:  []placementv1alpha1.ResourceSelector{{Kind: "ConfigMap", Name: "shop"}},
	}}
	addon := &addonv1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name}}
	work := &workv1alpha1.Work{ObjectMeta: inNamespace, Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{
		{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}`)}},
	}}}
	profiles, err := os.ReadFile("../../placement/clusterprofile/testdata/clusterprofiles.yaml")
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(profiles, &definition.Object))
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	member.Spec.Accepted = new(true)
	profile := &unstructured.Unstructured{}
	profile.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1",
		Kind: "ClusterProfile"})
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, definition, member,
		&corev1.ConfigMap{ObjectMeta: inNamespace, Data: map[string]string{"a": "b"}},
		token, short, placement, set, addon, work,
	}
	created := map[client.Object]bool{}
	mustertest.Eventually(t, timeLimit, "all parts act", func() error {
		for _, object := range objects {
			if !created[object] {
				if err := client.IgnoreAlreadyExists(c.Create(t.Context(), object)); err != nil {
					return err // The definition, or the hub's namespace, does not exist yet.
				}
				created[object] = true
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: clusterprofile.DefaultProfileNamespace, Name: name},
			profile); err != nil {
			return err
		}
		switch {
		case token.Status.SecretName == "":
			return fmt.Errorf("JoinToken: %+v", token.Status)
		case !meta.IsStatusConditionTrue(short.Status.Conditions, membershipv1alpha1.ConditionReady):
			return fmt.Errorf("JoinToken of type BootstrapToken: %+v", short.Status)
		case placement.Status.ObservedGeneration == 0:
			return fmt.Errorf("Placement: %+v", placement.Status)
		case set.Status.Revision == "":
			return fmt.Errorf("WorkSet: %+v", set.Status)
		case addon.Status.ObservedGeneration == 0:
			return fmt.Errorf("Addon: %+v", addon.Status)
		case meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied) == nil:
			return fmt.Errorf("Work: %+v", work.Status)
		}
		return nil
	})
}
