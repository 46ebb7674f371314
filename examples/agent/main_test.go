package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/leave"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var (
	hubPlane    = localplane.Shared{Options: localplane.Options{Name: "hub"}}
	memberPlane = localplane.Shared{Options: localplane.Options{Name: "member"}}
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(localplane.Run(m, &hubPlane, &memberPlane))
}

const timeLimit = 3 * time.Minute

// TestHubs_ElectionAndNames checks that agents that can replace each other use the same leader election, and that each
// hub of the flags becomes a hub of the options.
func TestHubs_ElectionAndNames(t *testing.T) {
	for _, test := range []struct {
		args     []string
		election string
		hubs     []string
	}{
		{nil, "muster-agent", nil},
		{[]string{"--hub", "one"}, "muster-agent-one", []string{"one"}},
		{[]string{"--hub", "one", "--hub", "two"}, "muster-agent-one", []string{"one", "two"}},
	} {
		f, err := parse(test.args)
		require.NoError(t, err)
		require.Equal(t, test.election, f.election())
		var hubs []string
		for _, hub := range f.options(&rest.Config{Host: "https://member"}, func(lifecycle.AgentStep) {}).Hubs {
			hubs = append(hubs, hub.Name)
		}
		require.Equal(t, test.hubs, hubs)
	}
}

func TestMethod_FlagToOptions(t *testing.T) {
	for flag, want := range map[string]registration.Method{
		"": token.Method{}, "token": token.Method{}, "csr": csr.Method{},
	} {
		args := []string{"--method", flag}
		if flag == "" {
			args = nil
		}
		f, err := parse(args)
		require.NoError(t, err)
		require.Equal(t, want, f.options(&rest.Config{Host: "https://member"}, func(lifecycle.AgentStep) {}).Method)
	}
	_, err := parse([]string{"--method", "password"})
	require.ErrorContains(t, err, "--method")
}

func TestLabels_FlagToOptions(t *testing.T) {
	f, err := parse([]string{"--label", "team=shop", "--label=tier=", "--label", "url=a=b"})
	require.NoError(t, err)
	options := f.options(&rest.Config{Host: "https://member"}, func(lifecycle.AgentStep) {})
	require.Equal(t, map[string]string{"team": "shop", "tier": "", "url": "a=b"}, options.Labels)
	for _, args := range [][]string{{"--label", "team"}, {"--label", "=shop"},
		{"--label=team=shop", "--label=team=toys"}} {
		_, err := parse(args)
		require.ErrorContains(t, err, "-label", args)
	}
}

// TestHubConfig_ProxyAndCredential checks the flags for connections to the hub.
func TestHubConfig_ProxyAndCredential(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "hub.kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://other"}}]
users: [{name: a, user: {token: secret-words}}]
`), 0o600))
	f, err := parse([]string{
		"--method", "identity", "--hub-kubeconfig", kubeconfig, "--proxy-url", "http://proxy.example.com:3128",
	})
	require.NoError(t, err)
	configure, err := f.hubConfig()
	require.NoError(t, err)
	hub := &rest.Config{Host: "https://hub", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}
	configure(hub)
	require.Equal(t, "https://hub", hub.Host)
	require.Equal(t, "ca", string(hub.CAData))
	require.Equal(t, "secret-words", hub.BearerToken)
	proxy, err := hub.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "hub"}})
	require.NoError(t, err)
	require.Equal(t, "proxy.example.com:3128", proxy.Host)

	for _, args := range [][]string{{"--hub-kubeconfig", kubeconfig}, {"--proxy-url", "proxy"}} {
		_, err := parse(args)
		require.ErrorContains(t, err, args[0])
	}
}

// TestUntilOut checks that the program ends for a restart when its agent has left all hubs permanently, and not before.
func TestUntilOut(t *testing.T) {
	in := func(message string) lifecycle.AgentStep { return lifecycle.AgentStep{Message: message} }
	out := func(message string) lifecycle.AgentStep { return lifecycle.AgentStep{Message: message, Done: true} }
	for _, test := range []struct {
		reason string
		hubs   int
		steps  []lifecycle.AgentStep
		want   bool
	}{
		{"the agent is a member", 0, []lifecycle.AgentStep{in("In the fleet.")}, false},
		{"the agent has left", 0, []lifecycle.AgentStep{in("In the fleet."), out("Out for good.")}, true},
		{"the agent has left its only hub", 1, []lifecycle.AgentStep{in("Hub one: In the fleet."),
			out("Hub one: Out for good.")}, true},
		{"the agent has left one of two hubs", 2, []lifecycle.AgentStep{out("Hub one: Out for good."),
			in("Hub two: In the fleet.")}, false},
		{"the agent has left both hubs", 2, []lifecycle.AgentStep{out("Hub one: Out for good."), in("Hub two: In the fleet."),
			out("Hub two: Out for good.")}, true},
		{"the agent has rejoined the first hub, and left the second one", 2,
			[]lifecycle.AgentStep{out("Hub one: Out."), in("Hub one: In."),
				out("Hub two: Out.")}, false},
	} {
		ended := false
		observe := untilOut(test.hubs, func() { ended = true })
		for _, step := range test.steps {
			observe(step)
		}
		require.Equal(t, test.want, ended, test.reason)
	}
}

// TestInstalledAgent checks that the manifests suffice for the program. The hub installs them on a member. The test
// runs the program with the arguments of the Deployment, as its ServiceAccount. The program makes the cluster a member,
// applies a Work and leaves. No object remains afterwards.
func TestInstalledAgent(t *testing.T) {
	ctx := t.Context()
	hubConfig, memberConfig := hubPlane.ForTest(t).Config(), memberPlane.ForTest(t).Config()
	onHub, onMember := newClient(t, hubConfig), newClient(t, memberConfig)
	connect := startHub(t, hubConfig, onHub)
	requireNothingNew := sweep(t, hubConfig, memberConfig)

	cluster := &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: v1alpha1.MemberClusterSpec{
			Accepted: new(true), JoinMode: v1alpha1.JoinInstall,
			KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: "east"}, HeartbeatPeriodSeconds: 1,
		},
	}
	require.NoError(t, onHub.Create(ctx, cluster))
	connect(cluster, memberConfig)
	until(t, onHub, cluster, v1alpha1.ConditionInstalled)

	deployment := &appsv1.Deployment{}
	require.NoError(t, onMember.Get(ctx, client.ObjectKey{Namespace: "muster-system", Name: "muster-agent"}, deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	require.Equal(t, "registry.example.com/agent:v1", container.Image)
	f, err := parse(container.Args)
	require.NoError(t, err)
	require.True(t, f.works)
	require.Equal(t, cluster.Spec.ClusterID, f.clusterID)
	f.probes = "127.0.0.1:0"
	account := deployment.Spec.Template.Spec.ServiceAccountName
	stop := start(t, func(ctx context.Context) error { return run(ctx, asAccount(t, memberConfig, onMember, account), f) })
	until(t, onHub, cluster, v1alpha1.ConditionJoined)

	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: "settings"},
		Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},` +
				`"data":{"a":"b"}}`),
		}}}},
	}
	require.NoError(t, onHub.Create(ctx, work))
	settings := &corev1.ConfigMap{}
	mustertest.Eventually(t, timeLimit, "the Work is applied", func() error {
		return onMember.Get(ctx, client.ObjectKey{Namespace: "default", Name: "settings"}, settings)
	})

	require.NoError(t, onHub.Delete(ctx, cluster))
	mustertest.Eventually(t, timeLimit, "the member has left", func() error {
		return requireNotFound(onHub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	})
	stop()
	require.NoError(t, requireNotFound(onMember.Get(ctx, client.ObjectKeyFromObject(settings), settings)))
	require.NoError(t, requireNotFound(onMember.Get(ctx, client.ObjectKey{Name: "appliedworks.work.muster.dev"},
		&apiextensionsv1.CustomResourceDefinition{})))
	requireNothingNew()
}

// TestHostedAgent checks an agent that runs outside of its member. The manifests contain everything that the agent
// needs on both clusters. A user who has applied them deletes them after the agent has left, and no object remains.
func TestHostedAgent(t *testing.T) {
	ctx := t.Context()
	hubConfig, memberConfig := hubPlane.ForTest(t).Config(), memberPlane.ForTest(t).Config()
	onHub, onMember := newClient(t, hubConfig), newClient(t, memberConfig)
	startHub(t, hubConfig, onHub)
	requireNothingNew := sweep(t, hubConfig, memberConfig)
	// The cluster of the hub hosts the agent.
	undeploy := []func(){put(t, onHub, "hosted/hosting"), put(t, onMember, "hosted/member")}
	require.NoError(t, onHub.Create(ctx, &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1alpha1.MemberClusterSpec{Accepted: new(true), ClusterID: "west",
			HeartbeatPeriodSeconds: 1},
	}))
	token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "west"}}
	mustertest.Eventually(t, timeLimit, "the JoinToken is created", func() error {
		return client.IgnoreAlreadyExists(onHub.Create(ctx, token))
	})
	given := &corev1.Secret{}
	mustertest.Eventually(t, timeLimit, "the JoinToken has a Secret", func() error {
		return onHub.Get(ctx, client.ObjectKeyFromObject(token), given)
	})
	require.NoError(t, onHub.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret},
		Data:       given.Data,
	}))

	kubeconfig, err := localplane.Kubeconfig(asAccount(t, memberConfig, onMember, "muster-agent"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(file, kubeconfig, 0o600))
	f, err := parse([]string{"--works", "--cluster-id=west", "--name=west", "--member-kubeconfig=" + file})
	require.NoError(t, err)
	stop := start(t, func(ctx context.Context) error {
		return run(ctx, asAccount(t, hubConfig, onHub, "muster-agent"), f)
	})
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	until(t, onHub, cluster, v1alpha1.ConditionJoined)
	until(t, onHub, cluster, v1alpha1.ConditionHealthy)

	require.NoError(t, onHub.Delete(ctx, cluster))
	mustertest.Eventually(t, timeLimit, "the member has left", func() error {
		return requireNotFound(onHub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	})
	mustertest.Eventually(t, timeLimit, "the agent has deleted its state", func() error {
		return requireNotFound(onHub.Get(ctx, client.ObjectKey{Namespace: agent.DefaultNamespace,
			Name: agent.DefaultStoreSecret},
			given))
	})
	stop()
	require.NoError(t, onHub.Delete(ctx, token))
	for _, each := range undeploy {
		each()
	}
	requireNothingNew()
}

// put applies the objects of an overlay, as kubectl apply -k does. The returned function deletes them.
func put(t *testing.T, c client.Client, overlay string) (undeploy func()) {
	objects, err := deploy.Objects(overlay)
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner("test")))
	}
	undeploy = func() {
		for _, object := range objects {
			require.NoError(t, client.IgnoreNotFound(c.Delete(context.Background(), object.DeepCopy())))
		}
	}
	t.Cleanup(undeploy)
	return undeploy
}

// hubsOwn are the objects of a hub without members.
var hubsOwn = []string{
	"ClusterRole.rbac.authorization.k8s.io/v1 muster-agent", "ClusterRole.rbac.authorization.k8s.io/v1 muster-bootstrap",
	"ConfigMap.v1 muster-registration/muster-hub", "Namespace.v1 muster-registration",
	"ResourceQuota.v1 muster-registration/muster-registration",
}

// sweep lists all objects of both clusters. The returned function waits until no additional objects exist.
func sweep(t *testing.T, hub, member *rest.Config) (requireNothingNew func()) {
	t.Helper()
	planes := map[string]*rest.Config{"hub": hub, "member": member}
	before := map[string]sets.Set[string]{}
	for name, config := range planes {
		var err error
		before[name], err = localplane.Sweep(t.Context(), config)
		require.NoError(t, err)
	}
	before["hub"].Insert(hubsOwn...) // the hub may still create these objects
	return func() {
		t.Helper()
		for name, config := range planes {
			mustertest.Eventually(t, timeLimit, "no additional objects are on the "+name, func() error {
				after, err := localplane.Sweep(t.Context(), config)
				if added := after.Difference(before[name]); added.Len() > 0 {
					return fmt.Errorf("additional objects: %q", sets.List(added))
				}
				return err
			})
		}
	}
}

// startHub starts a hub that installs agents. The returned function connects a member to the hub, as a fleet management
// system would.
func startHub(t *testing.T, config *rest.Config,
	c client.Client) (connect func(*v1alpha1.MemberCluster, *rest.Config)) {
	require.NoError(t, errors.Join(crds.Install(t.Context(), c), workcrds.InstallOnHub(t.Context(), c)))
	installer, err := deploy.Agent(deploy.AgentOptions{
		Image: "registry.example.com/agent:v1",
		Works: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list",
			"watch", "create", "patch", "delete"}}},
	})
	require.NoError(t, err)
	mgr, err := manager.New(config, manager.Options{Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	runner, err := install.New(mgr, install.Options{Installer: installer})
	require.NoError(t, err)
	require.NoError(t, hub.SetupWithManager(mgr, hub.Options{
		Gates: []membership.LeaveGate{leave.Gate(mgr.GetClient()), runner}, AgentRules: workagent.HubRules(),
	}))
	start(t, mgr.Start)
	return func(cluster *v1alpha1.MemberCluster, member *rest.Config) {
		cluster = cluster.DeepCopy() // the test continues to read into the original
		start(t, func(ctx context.Context) error {
			for ctx.Err() == nil {
				if err := runner.Run(ctx, fleet.Connected{Cluster: cluster.DeepCopy(),
					Config: rest.CopyConfig(member)}); err != nil {
					t.Log(err) // a fleet calls Run again
				}
			}
			return nil
		})
	}
}

func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); stopped {
			return
		}
		stopped = true
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the agent ended with an error: %v", err)
			}
		case <-time.After(timeLimit):
			t.Error("the agent does not end within the time limit")
		}
	}
	t.Cleanup(stop)
	return stop
}

// asAccount returns a client configuration with the credential of a Pod with a ServiceAccount in the agent's namespace.
func asAccount(t *testing.T, admin *rest.Config, c client.Client, name string) *rest.Config {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: name}}
	token := &authenticationv1.TokenRequest{}
	require.NoError(t, c.SubResource("token").Create(t.Context(), account, token))
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	return config
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, workv1alpha1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	return c
}

func requireNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("the object exists (%w)", err)
}

func until(t *testing.T, c client.Client, cluster *v1alpha1.MemberCluster, condition string) {
	t.Helper()
	mustertest.Eventually(t, timeLimit, condition, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions, condition); c == nil ||
			c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %s: got %+v", condition, c)
		}
		return nil
	})
}
