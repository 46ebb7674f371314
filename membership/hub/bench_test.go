package hub_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

var (
	fleetSize    = flag.Int("members", 300, "how many members BenchmarkJoin joins")
	hubWorkers   = flag.Int("hub-workers", 0, "hub.Options.Workers in BenchmarkJoin; 0: the default")
	floorWorkers = flag.Int("floor-workers", 16, "how many goroutines make the writes of BenchmarkJoin's floor")
)

const (
	// fleetTimeout is the time limit for all members to join, or to be removed.
	fleetTimeout = 3 * time.Minute
	// floorPart is the part of the fleet whose writes the floor makes. Rates are compared, so that a part is enough. The
	// deletion of its objects takes most of the time.
	floorPart = 3
	// removals is the number of members that are deleted at a time.
	removals = 8
	// sealing is the number of bytes that encryption adds to a token.
	sealing = 32 + 16
)

// BenchmarkJoin measures how long a fleet of hollow members takes to join a hub concurrently with one token. Each
// member has a real agent; all agents run in one program and use the hub's own plane as their cluster. A member has
// joined when the hub reports it as healthy and has deleted its request.
//
// The floor is the time in which an administrator with a bare client makes the writes of as many joins, as listed in
// TestWritesOfAJoin: in the same run, on objects of the same size, by 16 goroutines, because 8, 32 and 64 were not
// faster on two cores. The floor has no hub that watches, no agent that connects, is authorized and reads, and no
// member to observe.
//
// Both need the whole machine, so run the benchmark alone. With -v, it lists the requests.
//
//	go test -run '^$' -bench Join -benchtime 1x ./membership/hub
func BenchmarkJoin(b *testing.B) {
	p := plane.ForTest(b)
	var joining, leaving, writing time.Duration
	var memory int64
	var ofHub, ofAgents, ofMembers, ofFloor requests
	counted := map[string]int{}
	count := func(component string, r *requests) {
		all := r.take()
		if testing.Verbose() {
			b.Logf("%s: %v", component, all)
		}
		for _, n := range all {
			counted[component] += n
		}
	}
	for b.Loop() {
		b.StopTimer()
		h := startHub(b, p, hub.Options{MaxRequests: 10 * joiners(), Workers: *hubWorkers}, ofHub.wrap)
		bootstrap := h.token("bench", v1alpha1.JoinTokenSpec{AutoAccept: true})
		members := h.followFleet()
		empty := inUse()
		fleet := h.newFleet(bootstrap, &ofAgents, &ofMembers)
		ofHub.take() // without the requests of the start

		b.StartTimer()
		began := time.Now()
		stopFleet := mustertest.Run(b, "the fleet", fleet.Start)
		h.untilFleet(members, joiners())
		h.Eventually("all requests are collected", h.noRequests)
		joining += time.Since(began)
		b.StopTimer()
		count("hub", &ofHub)
		count("agent", &ofAgents)
		count("member", &ofMembers)
		memory += inUse() - empty
		samples := h.fleetSamples()

		began = time.Now()
		inParallel(b, joiners(), removals, func(i int) error {
			return h.Client.Delete(b.Context(), &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fleetName(i)}})
		})
		h.untilFleet(members, 0)
		leaving += time.Since(began)
		stopFleet()
		h.stop()

		f := h.newFloor(bootstrap, samples, &ofFloor)
		began = time.Now()
		inParallel(b, len(f.requests), *floorWorkers, func(i int) error { return f.join(b.Context(), f.requests[i]) })
		writing += time.Since(began)
		count("floor", &ofFloor)
		f.clean()
		b.StartTimer()
	}

	all, floor := float64(b.N*joiners()), float64(b.N*floorSize())
	b.ReportMetric(all/joining.Seconds(), "joins/s")
	b.ReportMetric(floor/writing.Seconds(), "floor-joins/s")
	b.ReportMetric((joining.Seconds()/all)/(writing.Seconds()/floor), "x-floor")
	b.ReportMetric(all/leaving.Seconds(), "leaves/s")
	b.ReportMetric(float64(memory)/all, "B/member")
	b.ReportMetric(float64(counted["floor"])/floor, "floor-requests/join")
	for _, component := range []string{"hub", "agent", "member"} {
		b.ReportMetric(float64(counted[component])/all, component+"-requests/join")
	}
}

func fleetName(i int) string { return fmt.Sprintf("fleet-%04d", i) }

// newFleet returns a manager for the agents of a fleet.
func (h *testHub) newFleet(bootstrap *registration.Bootstrap, ofAgents, ofMembers *requests) manager.Manager {
	h.T.Helper()
	mgr, err := manager.New(h.Config, manager.Options{
		Scheme: newScheme(), Logger: testLogger(h.T, "fleet"), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	require.NoError(h.T, err)
	member := ofMembers.wrap(h.Config)
	for i := range joiners() {
		require.NoError(h.T, agent.SetupWithManager(mgr, agent.Options{
			Name: fleetName(i), ClusterID: "id-" + fleetName(i), Member: member, Store: &testkit.MemoryStore{},
			Bootstrap: agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return bootstrap, nil }),
			HubConfig: func(config *rest.Config) { *config = *ofAgents.wrap(config) },
		}))
	}
	return mgr
}

// followFleet returns a cache of the hub's MemberClusters.
func (h *testHub) followFleet() client.Reader {
	h.T.Helper()
	members, err := cache.New(h.Config, cache.Options{Scheme: newScheme()})
	require.NoError(h.T, err)
	_, err = members.GetInformer(h.T.Context(), &v1alpha1.MemberCluster{}, cache.BlockUntilSynced(false))
	require.NoError(h.T, err)
	go func() { _ = members.Start(h.T.Context()) }() // ends with the benchmark
	require.True(h.T, members.WaitForCacheSync(h.T.Context()))
	return members
}

// untilFleet waits until the given number of members exist and all are healthy.
func (h *testHub) untilFleet(members client.Reader, size int) {
	h.T.Helper()
	deadline := time.Now().Add(fleetTimeout)
	for {
		var list v1alpha1.MemberClusterList
		require.NoError(h.T, members.List(h.T.Context(), &list, client.UnsafeDisableDeepCopy))
		var missing *v1alpha1.MemberCluster
		for i := range list.Items {
			if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionHealthy) {
				missing = &list.Items[i]
			}
		}
		if len(list.Items) == size && missing == nil {
			return
		}
		if time.Now().After(deadline) {
			detail := ""
			if missing != nil {
				detail = fmt.Sprintf("; %s is %s: %s", missing.Name, missing.Status.Phase, messages(missing.Status.Conditions))
			}
			h.T.Fatalf("%d members of %d after %s%s", len(list.Items), size, fleetTimeout, detail)
		}
		pause(interval)
	}
}

func (h *testHub) noRequests() error {
	var list v1alpha1.JoinRequestList
	if err := h.Client.List(h.T.Context(), &list); err != nil {
		return err
	}
	if n := len(list.Items); n > 0 {
		return fmt.Errorf("%d JoinRequests exist", n)
	}
	return nil
}

// samples contains the objects of a join whose sizes the floor uses.
type samples struct {
	cluster *v1alpha1.MemberCluster
	self    *v1alpha1.Membership
	lease   *coordinationv1.Lease
}

func (h *testHub) fleetSamples() samples {
	h.T.Helper()
	l := samples{h.member(fleetName(0)), &v1alpha1.Membership{}, &coordinationv1.Lease{}}
	namespace := l.cluster.Status.Namespace
	require.NoError(h.T, h.Client.Get(h.T.Context(),
		client.ObjectKey{Namespace: namespace, Name: membership.MembershipName}, l.self))
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: namespace, Name: membership.LeaseName},
		l.lease))
	return l
}

// floor makes the writes of joins without a hub and agents.
type floor struct {
	*testHub
	samples
	bare     client.Client
	requests []*v1alpha1.JoinRequest

	counting sync.Mutex
	token    *v1alpha1.JoinToken
}

// newFloor prepares everything that needs no API server, so that the time of the floor is that of the API server.
func (h *testHub) newFloor(bootstrap *registration.Bootstrap, l samples, counted *requests) *floor {
	h.T.Helper()
	f := &floor{testHub: h, samples: l, token: &v1alpha1.JoinToken{}}
	var err error
	f.bare, err = client.New(counted.wrap(h.Config), client.Options{Scheme: newScheme()})
	require.NoError(h.T, err)
	require.NoError(h.T, h.Client.Get(h.T.Context(),
		client.ObjectKey{Namespace: bootstrap.Namespace, Name: bootstrap.TokenName}, f.token))
	for i := range floorSize() {
		claim, err := registration.NewClaimKey()
		require.NoError(h.T, err)
		credentialRequest, _, err := token.Method{}.Request(claim, nil)
		require.NoError(h.T, err)
		name := floorName(i)
		request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{ClusterID: "id-" + name, Name: name,
			Credential: credentialRequest}}
		require.NoError(h.T, registration.Sign(request, claim, bootstrap))
		f.requests = append(f.requests, request)
	}
	return f
}

// joiners returns the number of members that join.
func joiners() int { return testkit.Size(*fleetSize) }

func floorSize() int { return max(1, joiners()/floorPart) }

func floorName(i int) string { return fmt.Sprintf("floor-%04d", i) }

// join makes the writes of one join.
func (f *floor) join(ctx context.Context, request *v1alpha1.JoinRequest) error {
	name, claim := request.Spec.Name, registration.Fingerprint(request.Spec.ClaimKey)
	namespace := membership.NamespaceFor(membership.DefaultNamespacePrefix, name)
	labels := map[string]string{membership.MemberLabel: name}
	in := func(object string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: object, Labels: labels}
	}
	cluster := &v1alpha1.MemberCluster{Spec: *f.cluster.Spec.DeepCopy(), ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: f.cluster.Labels, Annotations: f.cluster.Annotations, Finalizers: f.cluster.Finalizers,
	}}
	cluster.Spec.ClusterID, cluster.Spec.Claim = request.Spec.ClusterID, claim
	self := &v1alpha1.Membership{ObjectMeta: in(membership.MembershipName), Spec: *f.self.Spec.DeepCopy()}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: membership.AgentName}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: in(membership.AgentName), Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.AgentClusterRole},
	}
	account := &corev1.ServiceAccount{ObjectMeta: in(membership.AgentName), AutomountServiceAccountToken: new(false)}
	account.Annotations = map[string]string{v1alpha1.GroupName + "/claim": claim}
	credential := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(token.DefaultLifetime.Seconds()))}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: membership.LeaseName},
		Spec: *f.lease.Spec.DeepCopy()}

	report := func(status v1alpha1.MemberClusterStatus) error {
		before := cluster.DeepCopy()
		cluster.Status = status
		return f.bare.Status().Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	create := func(object client.Object) func() error {
		return func() error { return f.bare.Create(ctx, object) }
	}
	for _, write := range []func() error{
		// The API server returns a conflict if many requests change the status of the quota concurrently.
		func() error { return retry.RetryOnConflict(retry.DefaultBackoff, create(request)) },
		func() error { return f.count(ctx, request.Spec.ClusterID) },
		create(cluster),
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}),
		create(self),
		create(binding),
		func() error {
			return report(v1alpha1.MemberClusterStatus{
				Phase: v1alpha1.PhaseJoining, Namespace: namespace, Subject: &subject, Conditions: f.cluster.Status.Conditions,
			})
		},
		create(account),
		func() error { return f.bare.SubResource("token").Create(ctx, account, credential) },
		func() error { return f.answer(ctx, request, cluster, credential) },
		create(lease),
		func() error {
			self.Status = *f.self.Status.DeepCopy()
			return f.bare.Status().Update(ctx, self)
		},
		func() error { return report(*f.cluster.Status.DeepCopy()) },
		func() error { return f.bare.Delete(ctx, request) },
	} {
		if err := write(); err != nil {
			return fmt.Errorf("the floor of %s: %w", name, err)
		}
	}
	return nil
}

// count counts a use of the token. It serializes the counts, because each must follow the previous one.
func (f *floor) count(ctx context.Context, clusterID string) error {
	f.counting.Lock()
	defer f.counting.Unlock()
	return jointoken.Count(ctx, f.bare, f.token, clusterID)
}

func (f *floor) answer(ctx context.Context, request *v1alpha1.JoinRequest, cluster *v1alpha1.MemberCluster,
	issued *authenticationv1.TokenRequest) error {
	before := request.DeepCopy()
	expiration := issued.Status.ExpirationTimestamp
	request.Status = v1alpha1.JoinRequestStatus{
		Answer: v1alpha1.AnswerIssued, Claim: cluster.Spec.Claim, MemberName: cluster.Name, MemberUID: cluster.UID,
		Namespace: cluster.Status.Namespace,
		Credential: &v1alpha1.Credential{
			Type: v1alpha1.CredentialToken, SealedToken: make([]byte, len(issued.Status.Token)+sealing), IssuedAt: &expiration,
			ExpirationTime: &expiration,
		},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionIssued, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIssued,
			Message: "The credential is in the status.", LastTransitionTime: expiration,
		}},
	}
	return f.bare.Status().Patch(ctx, request, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// clean deletes the objects of the floor, because no hub does.
func (f *floor) clean() {
	f.T.Helper()
	ctx := f.T.Context()
	withoutFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	inParallel(f.T, len(f.requests), removals, func(i int) error {
		cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: floorName(i)}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.NamespaceFor(
			membership.DefaultNamespacePrefix, cluster.Name)}}
		return errors.Join(f.Client.Patch(ctx, cluster, withoutFinalizers), f.Client.Delete(ctx, cluster),
			f.Client.Delete(ctx, namespace))
	})
	require.Eventually(f.T, func() bool {
		var list corev1.NamespaceList
		return f.Client.List(ctx, &list, client.HasLabels{membership.MemberLabel}, client.Limit(1)) == nil &&
			len(list.Items) == 0
	}, fleetTimeout, time.Second, "the floor's namespaces are gone")
}

// inParallel calls do for each i below n.
func inParallel(t testing.TB, n, workers int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// inUse returns the memory that this program uses on the heap and in stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
