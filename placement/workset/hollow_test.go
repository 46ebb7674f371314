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

// hollows are members on a hub of their own, each with a real agent that has no more permissions on the hub than an
// agent has, and that finds in a part of one plane the cluster that it is of (see ownCluster). What they say of Works
// is what has become of real objects.
type hollows struct {
	*hub // of the step that is under way

	root    *testing.T        // the test as a whole
	plane   *localplane.Plane // of the hub
	shared  *rest.Config      // of the members' plane
	members client.Client     // of all of them
	names   []string
	seen    *worksSeen

	agents traffic // of all agents to the hub

	mu      sync.Mutex
	running map[string]func()
}

// agentRole is what an agent may do in its namespace on the hub.
const agentRole = "agents-of-works"

// newHollows makes members and runs their agents. The hub is one that the test may do anything to.
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

// join makes the members, and runs their agents.
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

// newHubAndPlane makes a hub on a control plane that has no members yet, and for those that it will have a cluster
// each, which is a part of the plane of the members.
func newHubAndPlane(t *testing.T, size int, members *localplane.Plane) *hollows {
	t.Helper()
	own := localplane.ForTest(t, localplane.Options{Name: "fleethub"})
	f := newHollowsOn(t, size, own.Config(), members.Config(),
		crds.Install, membershipcrds.Install, workcrds.InstallOnHub, workcrds.InstallOnMember)
	f.plane = own
	return f
}

// newHollowsOn is newHubAndPlane on two API servers. The last of what it installs is for the members.
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
		// Another test may have had members of these names, and have failed before it took back their objects.
		shop := ownCluster{member: name}.namespace()
		err := f.members.Create(t.Context(), namespace(shop))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		applied := client.MatchingLabels{workv1alpha1.AppliedLabel: "true"}
		return f.members.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(shop), applied)
	}))
	f.agents.forget()
	f.seen = f.watchWorks()
	return f
}

// make makes what a hub has of a member that has joined.
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

// onHub is the namespace of a member on the hub, and the name of its agent's user.
func onHub(name string) string { return "member-" + name }

// startAgent runs the agent of a member until the test is over, or stopAgent is called.
func (f *hollows) startAgent(name string) {
	f.t.Helper()
	toHub := rest.CopyConfig(f.config)
	toHub.Impersonate.UserName = onHub(name)
	toHub.Wrap(f.agents.over)
	a, err := agent.New(agent.Options{Hub: toHub, Namespace: onHub(name), Member: f.clusterOf(name), HubName: name})
	require.NoError(f.t, err)
	f.runs(name, a.Start)
}

// runs has the agent of a member run until the test is over, or stopAgent is called.
func (f *hollows) runs(name string, start func(context.Context) error) {
	stop := mustertest.Run(f.root, "the agent of "+name, start)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[name] = stop
}

// clusterOf is how to reach the cluster of a member.
func (f *hollows) clusterOf(name string) *rest.Config {
	config := rest.CopyConfig(f.shared)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return ownCluster{next, name} })
	return config
}

// stopAgent ends the agent of a member, which says nothing more.
func (f *hollows) stopAgent(name string) {
	f.mu.Lock()
	stop := f.running[name]
	f.mu.Unlock()
	stop()
}

// objects are the ConfigMaps of that name that the members have of Works, by member.
func (f *hollows) objects(t testing.TB, name string) map[string]*corev1.ConfigMap {
	t.Helper()
	var list corev1.ConfigMapList
	require.NoError(t, f.members.List(context.Background(), &list,
		client.MatchingLabels{workv1alpha1.AppliedLabel: "true"}))
	found := map[string]*corev1.ConfigMap{}
	for i := range list.Items {
		member, is := strings.CutPrefix(list.Items[i].Namespace, shopNamespace+"-")
		if is && list.Items[i].Name == name && slices.Contains(f.names, member) {
			found[member] = &list.Items[i]
		}
	}
	return found
}

// has is what is in them.
func (f *hollows) has(object string) map[string]map[string]string {
	f.t.Helper()
	found := map[string]map[string]string{}
	for member, o := range f.objects(f.t, object) {
		found[member] = o.Data
	}
	return found
}

// pollInterval is for something that takes all members to do, on a machine that has more to do.
const pollInterval = 2 * time.Minute

// wait waits for something that takes all members to do.
func (f *hollows) wait(what string, holds func() bool) {
	f.t.Helper()
	err := wait.PollUntilContextTimeout(f.t.Context(), 100*time.Millisecond, pollInterval, true,
		func(context.Context) (bool, error) { return holds(), nil })
	require.NoError(f.t, err, what)
}
