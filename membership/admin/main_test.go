package admin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the hub and the member of a test.
var plane = localplane.Shared{Options: localplane.Options{Name: "admin", Prepare: prepare}}

func prepare(ctx context.Context, config *rest.Config) error {
	c, err := connect(Hub, config)
	if err != nil {
		return err
	}
	return crds.Install(ctx, c)
}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

const timeLimit = 3 * time.Minute

// An apiServer is a control plane or an API server in memory.
type apiServer interface {
	Config() *rest.Config
	User(name string, groups ...string) *rest.Config
}

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct{ server *apiserver.Server }

func newMemory(t testing.TB) memoryServer {
	t.Helper()
	return memoryServer{testkit.Memory(t, mustertest.Scheme(v1alpha1.AddToScheme), crds.Install)}
}

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// User returns the config of a user in these groups.
func (m memoryServer) User(name string, groups ...string) *rest.Config {
	return m.server.Config(name, groups...)
}

// fleet is a hub that a test administers, and its only possible member.
type fleet struct {
	t      *testing.T
	plane  apiServer
	config *rest.Config
	c      *cluster
}

// newFleet returns a fleet whose hub is not running.
func newFleet(t *testing.T, p apiServer) *fleet {
	t.Helper()
	c, err := connect(Hub, p.Config())
	require.NoError(t, err)
	f := &fleet{t: t, plane: p, config: p.Config(), c: c}
	if _, ok := p.(memoryServer); ok { // which no other test uses
		return f
	}
	t.Cleanup(f.empty)
	mustertest.Holds(t, timeLimit, "the agent's namespace of an earlier test is deleted", func() bool {
		var namespace corev1.Namespace
		return !f.get(&namespace, "", agent.DefaultNamespace) || namespace.DeletionTimestamp == nil
	})
	return f
}

// run runs a hub until the test ends or stop is called.
func (f *fleet) run() (stop func()) {
	f.t.Helper()
	var options hub.Options
	if memory, ok := f.plane.(memoryServer); ok {
		options.Server, options.CA = memory.server.URL(), memory.server.CertificateAuthority()
	}
	return f.manage(func(mgr manager.Manager) error { return hub.SetupWithManager(mgr, options) })
}

// runAgent runs an agent on the member, with the credential that Register has stored, or with a bootstrap credential.
func (f *fleet) runAgent(name string, bootstrap *registration.Bootstrap) (stop func()) {
	f.t.Helper()
	options := agent.Options{Name: name, HubConfig: f.connect}
	if bootstrap != nil {
		options.Bootstrap = agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
			return bootstrap,
				nil
		})
	}
	return f.manage(func(mgr manager.Manager) error { return agent.SetupWithManager(mgr, options) })
}

// connect changes a config with the address of the hub so that it reaches a server in memory.
func (f *fleet) connect(config *rest.Config) {
	if memory, ok := f.plane.(memoryServer); ok {
		config.Dial = memory.server.DialContext
	}
}

// manage starts a manager, and returns a function that stops it after it has processed all events, also at the end of
// the test. A watch of metadata of controller-runtime never ends if it stops while an event is pending, and a test in
// virtual time fails if a goroutine is left.
func (f *fleet) manage(setup func(manager.Manager) error) (stop func()) {
	f.t.Helper()
	end := mustertest.StartManager(f.t, f.config, manager.Options{Scheme: f.c.Scheme()}, setup)
	if _, ok := f.plane.(memoryServer); !ok {
		return end
	}
	f.t.Cleanup(synctest.Wait)
	return func() {
		synctest.Wait()
		end()
	}
}

func (f *fleet) create(objects ...client.Object) {
	f.t.Helper()
	for _, object := range objects {
		require.NoError(f.t, client.IgnoreAlreadyExists(f.c.Create(f.t.Context(), object)))
	}
}

func (f *fleet) get(object client.Object, namespace, name string) bool {
	f.t.Helper()
	err := f.c.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if !apierrors.IsNotFound(err) {
		require.NoError(f.t, err)
	}
	return err == nil
}

func (f *fleet) member(name string) *v1alpha1.MemberCluster {
	f.t.Helper()
	var mc v1alpha1.MemberCluster
	require.True(f.t, f.get(&mc, "", name), "MemberCluster %s does not exist", name)
	return &mc
}

// token creates a JoinToken and returns its credential. The hub must be running.
func (f *fleet) token(spec v1alpha1.JoinTokenSpec) *registration.Bootstrap {
	f.t.Helper()
	_, bootstrap, err := CreateToken(f.t.Context(), f.config, TokenOptions{Spec: spec, Timeout: timeLimit})
	require.NoError(f.t, err)
	return bootstrap
}

// id returns the cluster ID.
func (f *fleet) id() string {
	f.t.Helper()
	id, err := f.c.id(f.t.Context())
	require.NoError(f.t, err)
	return id
}

// empty removes all objects that a test may have left, after its managers have ended.
func (f *fleet) empty() {
	ctx := context.Background()
	var members v1alpha1.MemberClusterList
	if err := f.c.List(ctx, &members); err != nil {
		f.t.Error(err)
	}
	for i := range members.Items {
		f.discard(&members.Items[i])
	}
	for _, all := range []client.Object{&v1alpha1.JoinRequest{}, &v1alpha1.JoinToken{}} {
		if err := f.c.DeleteAllOf(ctx, all, client.InNamespace(membership.RegistrationNamespace)); err != nil {
			f.t.Error(err)
		}
	}
	for _, namespace := range []string{agent.DefaultNamespace, membership.ConnectionNamespace} {
		for _, all := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
			if err := f.c.DeleteAllOf(ctx, all, client.InNamespace(namespace)); err != nil {
				f.t.Error(err)
			}
		}
	}
	for _, object := range []client.Object{&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{}} {
		object.SetName(accessName)
		f.discard(object)
	}
	// The namespace of the agent may still exist, depending on its creator.
	f.discard(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}})
	// The deletion of a member's namespace takes a while and delays the next member of that name.
	var namespaces corev1.NamespaceList
	if err := f.c.List(ctx, &namespaces, client.HasLabels{membership.MemberLabel}); err != nil {
		f.t.Error(err)
	}
	for i := range namespaces.Items {
		f.discard(&namespaces.Items[i])
	}
}

// discard deletes an object and its finalizers.
func (f *fleet) discard(object client.Object) {
	ctx := context.Background()
	_ = f.c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	_ = f.c.Delete(ctx, object)
}

// steps records the reported steps.
type steps []Step

func (s *steps) record(step Step) {
	*s = append(*s, step)
}

// details returns the details of one operation.
func (s *steps) details(doing string) (details []string) {
	for _, step := range *s {
		if step.Doing == doing {
			details = append(details, step.Detail)
		}
	}
	return details
}
