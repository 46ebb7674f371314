package workset_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// hollows are members of a separate hub. Each has a real agent with the permissions of an agent on the hub only. The
// cluster of each member is a part of one control plane (see ownCluster). The status of Works comes from real objects.
type hollows struct {
	*hub // of the current step

	root     *testing.T        // the test as a whole
	plane    *localplane.Plane // of the hub
	shared   *rest.Config      // of the members' plane
	members  client.Client     // of all members
	names    []string
	observed *worksObserved

	agents traffic // requests of all agents to the hub

	mu      sync.Mutex
	running map[string]func()
}

// agentRole is the name of the role with the permissions of an agent in its namespace on the hub.
const agentRole = "agents-of-works"

// newHollows creates members and runs their agents. Only this test uses the hub.
func newHollows(t *testing.T, size int) *hollows {
	t.Helper()
	return newHubAndPlane(t, size, plane.ForTest(t)).join()
}

// newHollowsInMemory is newHollows on API servers in memory.
func newHollowsInMemory(t *testing.T, size int) *hollows {
	t.Helper()
	own := testkit.Memory(t, scheme, crds.Install, membershipcrds.Install, workcrds.InstallOnHub)
	members := testkit.Memory(t, scheme, workcrds.InstallOnMember)
	return newHollowsOn(t, size, own.Admin(), members.Admin()).join()
}

// join creates the members, and runs their agents.
func (f *hollows) join() *hollows {
	f.t.Helper()
	require.NoError(f.t, f.client.Create(f.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentRole},
		Rules: agent.HubRules()}))
	require.NoError(f.t, testkit.InParallel(f.names, f.make))
	for _, name := range f.names {
		f.startAgent(name)
	}
	return f
}

// newHubAndPlane creates a hub without members on a control plane. The cluster of each later member is a part of the
// control plane members.
func newHubAndPlane(t *testing.T, size int, members *localplane.Plane) *hollows {
	t.Helper()
	own := localplane.ForTest(t, localplane.Options{Name: "fleethub"})
	f := newHollowsOn(t, size, own.Config(), members.Config(),
		crds.Install, membershipcrds.Install, workcrds.InstallOnHub, workcrds.InstallOnMember)
	f.plane = own
	return f
}

// newHollowsOn is newHubAndPlane on two API servers. The last one of installs is for the members.
func newHollowsOn(t *testing.T, size int, own, shared *rest.Config, installs ...func(context.Context,
	client.Client) error) *hollows {
	t.Helper()
	own.QPS, shared.QPS = -1, -1
	onHub, onMembers := installs, installs
	if n := len(installs); n > 0 {
		onHub, onMembers = installs[:n-1], installs[n-1:]
	}
	f := &hollows{root: t, shared: shared, running: map[string]func(){}, hub: &hub{t: t, config: own, namespace: "fleet"}}
	f.client = mustertest.Client(t, f.config, scheme, onHub...)
	f.members = mustertest.Client(t, shared, scheme, onMembers...)
	require.NoError(t, f.client.Create(t.Context(), namespace(f.namespace)))
	for i := range size {
		f.names = append(f.names, fmt.Sprintf("m%03d", i))
	}
	require.NoError(t, testkit.InParallel(f.names, func(name string) error {
		// An earlier test with members of these names may have failed before it deleted their objects.
		shop := ownCluster{member: name}.namespace()
		err := f.members.Create(t.Context(), namespace(shop))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		applied := client.MatchingLabels{workv1alpha1.AppliedLabel: "true"}
		return f.members.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(shop), applied)
	}))
	f.agents.reset()
	f.observed = f.watchWorks()
	return f
}

// make creates the objects on the hub of a member that has joined.
func (f *hollows) make(name string) error {
	ctx := f.t.Context()
	m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"hub": f.namespace, "name": name}}}
	in := onHub(name)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: agentRole}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: agentRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: in}},
	}
	for _, err := range []error{
		f.client.Create(ctx, namespace(in)),
		f.client.Create(ctx, binding),
		f.client.Create(ctx, m),
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
	return f.client.Status().Update(ctx, m)
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// onHub returns the namespace of a member on the hub, which is also the name of its agent's user.
func onHub(name string) string { return "member-" + name }

// startAgent runs the agent of a member until the test ends, or stopAgent is called.
func (f *hollows) startAgent(name string) {
	f.t.Helper()
	toHub := rest.CopyConfig(f.config)
	toHub.Impersonate.UserName = onHub(name)
	toHub.Wrap(f.agents.wrap)
	a, err := agent.New(agent.Options{Hub: toHub, Namespace: onHub(name), Member: f.clusterOf(name), HubName: name})
	require.NoError(f.t, err)
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
	f.t.Helper()
	found := map[string]map[string]string{}
	for member, o := range f.objects(f.t, object) {
		found[member] = o.Data
	}
	return found
}

// pollInterval is the timeout for a state that requires all members, on a machine with other load.
const pollInterval = 2 * time.Minute

// wait waits for a state that requires all members.
func (f *hollows) wait(what string, holds func() bool) {
	f.t.Helper()
	err := wait.PollUntilContextTimeout(f.t.Context(), 100*time.Millisecond, pollInterval, true,
		func(context.Context) (bool, error) { return holds(), nil })
	require.NoError(f.t, err, what)
}
