package workset_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// hollows are members of a separate hub. Each has a real agent with the permissions of an agent on the hub only. The
// cluster of each member is a part of one control plane (see ownCluster). The status of Works comes from real objects.
type hollows struct {
	*hub // of the current step

	root     *testing.T        // the test as a whole
	outage   outage            // of the hub
	memory   *apiserver.Server // of the hub; nil on a control plane
	shared   *rest.Config      // of the members' API server
	members  client.Client     // of all members
	names    []string
	observed *worksObserved

	agents traffic // requests of all agents to the hub

	mu      sync.Mutex
	running map[string]func()
}

// agentRole is the name of the role with the permissions of an agent in its namespace on the hub.
const agentRole = "agents-of-works"

// newHollows creates members and runs their agents, on API servers in memory. Only this test uses the hub.
func newHollows(t *testing.T, size int) *hollows {
	t.Helper()
	return newHollowsInMemory(t, size).join()
}

// newHollowsInMemory creates a hub without members. The cluster of each later member is a part of another API server.
func newHollowsInMemory(t *testing.T, size int) *hollows {
	t.Helper()
	own := testkit.Memory(t, scheme, installs...)
	config := own.Admin()
	down := &unreachable{server: own}
	config.Wrap(down.wrap)
	f := newHollowsOn(t, size, config)
	f.memory, f.outage = own, down
	return f
}

// newHollowsOnPlane does the same as newHollows for a hub on a control plane.
func newHollowsOnPlane(t *testing.T, size int) *hollows {
	t.Helper()
	own := plane.ForTest(t)
	f := newHollowsOn(t, size, own.Config())
	f.outage = killed{own}
	return f.join()
}

// outage is an outage of the API server of the hub.
type outage interface {
	begin(testing.TB)
	end(testing.TB)
}

// killed is a control plane whose API server is killed.
type killed struct{ plane *localplane.Plane }

func (k killed) begin(t testing.TB) { require.NoError(t, k.plane.KillAPIServer()) }
func (k killed) end(t testing.TB)   { require.NoError(t, k.plane.StartAPIServer(t.Context())) }

// unreachable is a server in memory whose watches end, and to which no request gets through.
type unreachable struct {
	server *apiserver.Server
	down   atomic.Bool
}

func (u *unreachable) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if u.down.Load() {
			select { // A client that tries again at once would stop the virtual time.
			case <-time.After(100 * time.Millisecond):
			case <-r.Context().Done():
			}
			return nil, syscall.ECONNREFUSED
		}
		return next.RoundTrip(r)
	})
}

func (u *unreachable) begin(testing.TB) { u.down.Store(true); u.server.DropWatches() }

// end ends the outage after as long as an API server needs to start.
func (u *unreachable) end(testing.TB) { <-time.After(5 * time.Second); u.down.Store(false) }

// join creates the members, and runs their agents.
func (f *hollows) join() *hollows {
	f.T.Helper()
	require.NoError(f.T, f.Client.Create(f.T.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentRole},
		Rules: agent.HubRules()}))
	require.NoError(f.T, testkit.InParallel(f.names, f.make))
	for _, name := range f.names {
		f.startAgent(name)
	}
	return f
}

// newHollowsOn creates a hub without members on an API server.
func newHollowsOn(t *testing.T, size int, own *rest.Config) *hollows {
	t.Helper()
	shared := testkit.Memory(t, scheme, workcrds.InstallOnMember).Admin()
	own.QPS = -1
	c := mustertest.Client(t, own, scheme)
	f := &hollows{root: t, shared: shared, running: map[string]func(){},
		hub: &hub{Hub: &testkit.Hub{T: t, Client: c, Config: own, Namespace: "fleet"}}}
	f.members = mustertest.Client(t, shared, scheme)
	require.NoError(t, f.Client.Create(t.Context(), namespace(f.Namespace)))
	for i := range size {
		f.names = append(f.names, fmt.Sprintf("m%03d", i))
	}
	require.NoError(t, testkit.InParallel(f.names, func(name string) error {
		return f.members.Create(t.Context(), namespace(ownCluster{member: name}.namespace()))
	}))
	f.agents.reset()
	f.observed = f.watchWorks()
	return f
}

// make creates the objects on the hub of a member that has joined.
func (f *hollows) make(name string) error {
	ctx := f.T.Context()
	m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"hub": f.Namespace, "name": name}}}
	in := onHub(name)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: agentRole}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: agentRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: in}},
	}
	for _, err := range []error{
		f.Client.Create(ctx, namespace(in)),
		f.Client.Create(ctx, binding),
		f.Client.Create(ctx, m),
	} {
		if err != nil {
			return err
		}
	}
	m.Status.Namespace = in
	for _, kind := range []string{membershipv1alpha1.ConditionJoined, membershipv1alpha1.ConditionHealthy} {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: "Test"})
	}
	return f.Client.Status().Update(ctx, m)
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// onHub returns the namespace of a member on the hub, which is also the name of its agent's user.
func onHub(name string) string { return "member-" + name }

// startAgent runs the agent of a member until the test ends, or stopAgent is called.
func (f *hollows) startAgent(name string) {
	f.T.Helper()
	toHub := rest.CopyConfig(f.Config)
	toHub.Impersonate.UserName = onHub(name)
	toHub.Wrap(f.agents.wrap)
	a, err := agent.New(agent.Options{Hub: toHub, Namespace: onHub(name), Member: f.clusterOf(name), HubName: name})
	require.NoError(f.T, err)
	f.runAgent(name, a.Start)
}

// runAgent starts the agent of a member. It runs until the test ends, or stopAgent is called.
func (f *hollows) runAgent(name string, start func(context.Context) error) {
	stop := mustertest.Run(f.root, "the agent of "+name, start)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[name] = stop
}

// clusterOf returns the client configuration for the cluster of a member.
func (f *hollows) clusterOf(name string) *rest.Config {
	config := rest.CopyConfig(f.shared)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return ownCluster{next, name} })
	return config
}

// stopAgent stops the agent of a member, which then reports nothing.
func (f *hollows) stopAgent(name string) {
	f.mu.Lock()
	stop := f.running[name]
	f.mu.Unlock()
	stop()
}

// objects returns the ConfigMaps with the name that the members have from Works, by member.
func (f *hollows) objects(t testing.TB, name string) map[string]*corev1.ConfigMap {
	t.Helper()
	var list corev1.ConfigMapList
	require.NoError(t, f.members.List(context.Background(), &list,
		client.MatchingLabels{workv1alpha1.AppliedLabel: "true"}))
	objects := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		member, found := strings.CutPrefix(list.Items[i].Namespace, shopNamespace+"-")
		if found && list.Items[i].Name == name && slices.Contains(f.names, member) {
			objects[member] = &list.Items[i]
		}
	}
	return objects
}

// dataOf returns the data of the ConfigMaps with the name, by member.
func (f *hollows) dataOf(object string) map[string]map[string]string {
	f.T.Helper()
	found := map[string]map[string]string{}
	for member, o := range f.objects(f.T, object) {
		found[member] = o.Data
	}
	return found
}

// pollInterval is the timeout for a state that requires all members, on a machine with other load.
const pollInterval = 2 * time.Minute

// wait waits for a state that requires all members.
func (f *hollows) wait(what string, holds func() bool) {
	f.T.Helper()
	err := wait.PollUntilContextTimeout(f.T.Context(), 100*time.Millisecond, pollInterval, true,
		func(context.Context) (bool, error) { return holds(), nil })
	require.NoError(f.T, err, what)
}
