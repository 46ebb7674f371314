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
	"github.com/muster-sdk/muster/mustertest/apiserver"
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

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct{ server *apiserver.Server }

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// world is a hub with one member on one API server. Objects of the member are in a namespace of its name.
type world struct {
	t      *testing.T
	server apiServer
	admin  client.Client
	hub    client.Client // with exactly the permissions of the folder rbac
	config *rest.Config  // of the hub's client
	member membership.Member
	played played
}

// newWorld creates all objects except the MemberCluster and its namespace, on a server in memory.
func newWorld(t *testing.T, name string) *world {
	t.Helper()
	return newWorldAt(t, memoryServer{testkit.Memory(t, scheme, installs...)}, name)
}

// newWorldOnPlane does the same as newWorld on the control plane.
func newWorldOnPlane(t *testing.T, name string) *world {
	t.Helper()
	return newWorldAt(t, plane.ForTest(t), name)
}

func newWorldAt(t *testing.T, server apiServer, name string) *world {
	t.Helper()
	w := &world{t: t, server: server, admin: mustertest.Client(t, server.Config(), scheme),
		member: membership.Member{Name: name, Namespace: "member-" + name}}
	w.config = w.user("hub-"+name, role(t).Rules)
	w.hub = mustertest.Client(t, w.config, scheme)
	w.played = played{world: w, forced: map[string]bool{}}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return w
}

func role(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	return mustertest.ClusterRole(t, "rbac/role.yaml")
}

func (w *world) user(name string, rules []rbacv1.PolicyRule) *rest.Config {
	w.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	require.NoError(w.t, mustertest.Grant(w.t.Context(), w.admin, name, role))
	return w.server.User(name)
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	require.NoError(w.t, w.admin.Create(w.t.Context(), o))
}

// namespace creates the member's namespace if there is no hub.
func (w *world) namespace() *world {
	w.t.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.member.Namespace}})
	return w
}

// addon creates a MemberAddon as its controller would.
func (w *world) addon(name string) *v1alpha1.MemberAddon {
	w.t.Helper()
	addon := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: name,
		Finalizers: []string{v1alpha1.MemberAddonFinalizer}}}
	w.create(addon)
	addon.Status.ObservedGeneration, addon.Status.Message = addon.Generation, "All is well."
	require.NoError(w.t, w.admin.Status().Update(w.t.Context(), addon))
	return addon
}

// work creates a Work that applies a ConfigMap with its name; with an add-on, the Work belongs to the add-on.
func (w *world) work(name, addon, options string) *workv1alpha1.Work {
	w.t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: name}}
	if addon != "" {
		work.Labels = map[string]string{v1alpha1.AddonLabel: addon}
	}
	spec := fmt.Sprintf("{manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}]%s}", name,
		w.member.Name, options)
	require.NoError(w.t, yaml.UnmarshalStrict([]byte(spec), &work.Spec))
	work.Finalizers = []string{workv1alpha1.Finalizer} // as after the first reconcile of an agent
	w.create(work)
	return work
}

// run runs the member's agent until the test ends.
func (w *world) run() {
	w.t.Helper()
	config := w.server.Config()
	a, err := agent.New(agent.Options{Hub: config, Namespace: w.member.Namespace, Member: config, HubName: w.member.Name})
	require.NoError(w.t, err)
	mustertest.Run(w.t, "the agent", a.Start)
}

// configMaps returns the names of the ConfigMaps on the member.
func (w *world) configMaps() (names []string) {
	w.t.Helper()
	var list corev1.ConfigMapList
	require.NoError(w.t, w.admin.List(context.Background(), &list, client.InNamespace(w.member.Name)))
	for _, o := range list.Items {
		if o.Name != "kube-root-ca.crt" {
			names = append(names, o.Name)
		}
	}
	return names
}

func (w *world) waitForConfigMaps(names ...string) {
	w.t.Helper()
	w.eventually(func() error {
		if got := w.configMaps(); !slices.Equal(got, names) {
			return fmt.Errorf("ConfigMaps of the member: want %q, got %q", names, got)
		}
		return nil
	})
}

func (w *world) exists(o client.Object) bool {
	w.t.Helper()
	err := w.admin.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	require.NoError(w.t, client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) eventually(try func() error) {
	w.t.Helper()
	mustertest.Eventually(w.t, deadline, "member "+w.member.Name, try)
}

// opens calls the gate until it is open, as a hub does, while the controller runs.
func (w *world) waitUntilOpen() {
	w.t.Helper()
	gate := leave.Gate(w.hub)
	w.eventually(func() error {
		w.played.reconcile()
		remaining, err := gate.Remaining(context.Background(), w.member)
		if err == nil && len(remaining) > 0 {
			err = fmt.Errorf("the gate is closed: %q", remaining)
		}
		return err
	})
}
