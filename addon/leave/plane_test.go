package leave_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addoncrds "github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/leave"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

const deadline = 3 * time.Minute

var plane = localplane.Shared{Options: localplane.Options{
	Name:    "addon-leave",
	Prepare: mustertest.Prepare(scheme, installs...),
}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

var scheme = mustertest.Scheme(membershipv1alpha1.AddToScheme, workv1alpha1.AddToScheme, v1alpha1.AddToScheme)

var installs = []func(context.Context, client.Client) error{membershipcrds.Install, workcrds.InstallOnHub,
	workcrds.InstallOnMember, addoncrds.Install}

// fixture is a hub with one member on one API server. Objects of the member are in the namespace of the Hub.
type fixture struct {
	*testkit.Hub
	server           testkit.Server
	restricted       client.Client // with exactly the permissions of the folder rbac
	restrictedConfig *rest.Config  // of restricted
	member           membership.Member
	played           played
}

// newFixture creates all objects except the MemberCluster and its namespace, on a server in memory.
func newFixture(t testing.TB, name string) *fixture {
	t.Helper()
	return newFixtureAt(t, testkit.MemoryServer{Server: testkit.Memory(t, scheme, installs...)}, name)
}

// newFixtureOnPlane does the same as newFixture on the control plane.
func newFixtureOnPlane(t testing.TB, name string) *fixture {
	t.Helper()
	return newFixtureAt(t, plane.ForTest(t), name)
}

func newFixtureAt(t testing.TB, server testkit.Server, name string) *fixture {
	t.Helper()
	f := &fixture{Hub: testkit.NewHub(t, server.Config(), scheme), server: server,
		member: membership.Member{Name: name, Namespace: "member-" + name}}
	f.restrictedConfig = f.user("hub-"+name, role(t).Rules)
	f.restricted = mustertest.Client(t, f.restrictedConfig, scheme)
	f.played = played{fixture: f, forced: map[string]bool{}}
	return f
}

func role(t testing.TB) *rbacv1.ClusterRole {
	t.Helper()
	return mustertest.ClusterRole(t, "rbac/role.yaml")
}

func (f *fixture) user(name string, rules []rbacv1.PolicyRule) *rest.Config {
	f.T.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	require.NoError(f.T, mustertest.Grant(f.T.Context(), f.Client, name, role))
	return f.server.User(name)
}

// withMemberNamespace creates the member's namespace if there is no hub.
func (f *fixture) withMemberNamespace() *fixture {
	f.T.Helper()
	f.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.member.Namespace}})
	return f
}

// addon creates a MemberAddon as its controller would.
func (f *fixture) addon(name string) *v1alpha1.MemberAddon {
	f.T.Helper()
	addon := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: name,
		Finalizers: []string{v1alpha1.MemberAddonFinalizer}}}
	f.Create(addon)
	addon.Status.ObservedGeneration, addon.Status.Message = addon.Generation, "All is well."
	require.NoError(f.T, f.Client.Status().Update(f.T.Context(), addon))
	return addon
}

// work creates a Work that applies a ConfigMap with its name; with an add-on, the Work belongs to the add-on.
func (f *fixture) work(name, addon, options string) *workv1alpha1.Work {
	f.T.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: name}}
	if addon != "" {
		work.Labels = map[string]string{v1alpha1.AddonLabel: addon}
	}
	spec := fmt.Sprintf("{manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}]%s}", name,
		f.Namespace, options)
	require.NoError(f.T, yaml.UnmarshalStrict([]byte(spec), &work.Spec))
	work.Finalizers = []string{workv1alpha1.Finalizer} // as after the first reconcile of an agent
	f.Create(work)
	return work
}

// run runs the member's agent until the test ends.
func (f *fixture) run() {
	f.T.Helper()
	config := f.server.Config()
	a, err := agent.New(agent.Options{Hub: config, Namespace: f.member.Namespace, Member: config, HubName: f.member.Name})
	require.NoError(f.T, err)
	mustertest.Run(f.T, "the agent", a.Start)
}

// configMaps returns the names of the ConfigMaps on the member.
func (f *fixture) configMaps() (names []string) {
	f.T.Helper()
	var list corev1.ConfigMapList
	require.NoError(f.T, f.Client.List(context.Background(), &list, client.InNamespace(f.Namespace)))
	for _, o := range list.Items {
		if o.Name != "kube-root-ca.crt" {
			names = append(names, o.Name)
		}
	}
	return names
}

func (f *fixture) waitForConfigMaps(names ...string) {
	f.T.Helper()
	f.eventually(func() error {
		if got := f.configMaps(); !slices.Equal(got, names) {
			return fmt.Errorf("ConfigMaps of the member: want %q, got %q", names, got)
		}
		return nil
	})
}

func (f *fixture) exists(o client.Object) bool {
	f.T.Helper()
	err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	require.NoError(f.T, client.IgnoreNotFound(err))
	return err == nil
}

func (f *fixture) eventually(try func() error) {
	f.T.Helper()
	mustertest.Eventually(f.T, deadline, "member "+f.member.Name, try)
}

// opens calls the gate until it is open, as a hub does, while the controller runs.
func (f *fixture) waitUntilOpen() {
	f.T.Helper()
	gate := leave.Gate(f.restricted)
	f.eventually(func() error {
		f.played.reconcile()
		remaining, err := gate.Remaining(context.Background(), f.member)
		if err == nil && len(remaining) > 0 {
			err = fmt.Errorf("the gate is closed: %q", remaining)
		}
		return err
	})
}
