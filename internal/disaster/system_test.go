package disaster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// lengthVariable is the environment variable that selects the length of the tests: "scaled" (.ci/run disaster) divides
// the times of a disaster, and takes six minutes of CPU time. With "full" (.ci/run disasters), members have the default
// period, an outage lasts for five minutes, and a leader is paused for a minute. Without it, the tests are skipped,
// because they are end-to-end tests of the whole system on a dozen control planes.
const lengthVariable = "MUSTER_DISASTER"

var fullLength = os.Getenv(lengthVariable) == "full"

var (
	// timeout is the time for which a test waits for one step. An informer that lost its API server may wait a
	// minute before it connects again.
	timeout = atFullLength(5*time.Minute, 2*time.Minute)

	// period is the heartbeat period of the members in seconds; it scales every grace period down. Zero is the default.
	period = atFullLength[int32](0, 1)
)

func atFullLength[T any](full, scaled T) T {
	if fullLength {
		return full
	}
	return scaled
}

// parallelTests is the number of parallel tests that run or wait for planes, unless -parallel is set. The budget of
// planes limits how many of them run.
const parallelTests = "1000"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && flag.Set("test.parallel", parallelTests) != nil {
		os.Exit(2) // Every test binary has this flag.
	}
	if runAsReplica() {
		os.Exit(1) // A replica ends only when it is not the leader anymore.
	}
	mustertest.Main(m, slices.Concat(hubPlanes.shared, memberPlanes.shared)...)
}

func newScheme() *runtime.Scheme {
	return mustertest.Scheme(assembly.AddToScheme, apiextensionsv1.AddToScheme)
}

// system is a hub and its members.
type system struct {
	t       *testing.T // the test, or its step that runs
	whole   *testing.T // the test: planes, hub and agents run until its end
	version string     // of the ConfigMap in the WorkSet, as written last
	plane   *localplane.Plane
	client  client.Client
	config  *rest.Config // of the hub's own user
	options assembly.HubOptions
	stopHub func()
	members []*member
	// counts the requests of the hub and of the agents that runHub and start have started
	wire mustertest.RequestCounter
}

// member is a cluster with an agent.
type member struct {
	name   string
	plane  *localplane.Plane
	client client.WithWatch
	hub    func(*rest.Config)
	id     string // its cluster ID; empty: the UID of kube-system
	stop   func()

	mu      sync.Mutex
	deleted []string
	noted   chan struct{} // receives a value when deleted becomes longer
}

// newSystem starts a hub and its members, and lets the members join. It is a parallel test from then on.
func newSystem(t *testing.T, options hub.Options, names ...string) *system {
	t.Helper()
	w := prepareSystem(t)
	w.options.Membership = options
	w.startHub()
	for _, name := range names {
		m := w.newMember(name)
		w.members = append(w.members, m)
	}
	for _, m := range w.members {
		w.register(m)
	}
	for _, m := range w.members {
		w.waitUntilJoined(m.name)
	}
	return w
}

// prepareSystem returns a system with the plane of a hub that does not run yet.
func prepareSystem(t *testing.T) *system {
	t.Helper()
	return prepareSystemOn(t, hubPlanes.borrow(t))
}

func prepareSystemOn(t *testing.T, plane *localplane.Plane) *system {
	t.Helper()
	w := &system{t: t, whole: t, options: assembly.HubOptions{
		Addons: addon.Options{Agents: []addon.Agent{greeter{}}}, SkipDefinitions: true,
		Without: []assembly.Part{assembly.PartTenancy}, // The hub has one user.
	}}
	w.prepareHub(plane)
	return w
}

// step runs a part of the test with the same hub and members as the steps before, because their start takes seconds.
// others are the other systems that the step uses. A step that fails ends the test.
func (w *system) step(name string, do func(t *testing.T), others ...*system) {
	w.whole.Helper()
	passed := w.whole.Run(name, func(t *testing.T) {
		for _, used := range append(others, w) {
			used.t = t
			defer func() { used.t = used.whole }()
		}
		// The hub keeps an issued JoinRequest for ten minutes, in which its agent cannot send another one.
		require.NoError(t, w.client.DeleteAllOf(t.Context(), &membershipv1alpha1.JoinRequest{},
			client.InNamespace(membership.RegistrationNamespace)))
		w.waitForMemberAdmission()
		do(t)
	})
	if !passed {
		w.whole.FailNow()
	}
}

// waitForMemberAdmission waits until the hub's API server admits changes of MemberClusters. After a start it denies
// them, for half a minute at most, until it has found the definition of ClusterSets, to which a policy refers.
func (w *system) waitForMemberAdmission() {
	w.t.Helper()
	w.eventually("the API server admits changes of MemberClusters", func() error {
		var clusters membershipv1alpha1.MemberClusterList
		if err := w.client.List(w.t.Context(), &clusters); err != nil {
			return err
		}
		for _, cluster := range clusters.Items {
			before := cluster.DeepCopy()
			metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, "disaster.muster.dev/step", w.t.Name())
			if err := w.client.Patch(w.t.Context(), &cluster, client.MergeFrom(before), client.DryRunAll); err != nil {
				return err
			}
		}
		return nil
	})
}

// join starts a member and waits until it has joined.
func (w *system) join(name string) {
	w.t.Helper()
	m := w.newMember(name)
	w.members = append(w.members, m)
	w.register(m)
	w.waitUntilJoined(name)
}

// register starts the agent of a member, and sets its heartbeat period.
func (w *system) register(m *member) {
	w.t.Helper()
	m.install(w.t, w.token(m.name))
	w.start(m)
	w.setPeriod(m.name)
}

func (w *system) prepareHub(plane *localplane.Plane) {
	t := w.t
	w.plane, w.client = plane, mustertest.Client(t, plane.Config(), newScheme())
	for _, name := range []string{membership.RegistrationNamespace, membership.ConnectionNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, client.IgnoreAlreadyExists(w.client.Create(t.Context(), namespace)))
	}
	const user = "muster-hub"
	files := []string{
		"membership/hub", "membership/fleet", "membership/push",
		"placement", "placement/workset", "addon", "addon/leave", "work/leave", "work/unassigned",
	}
	for _, folder := range files {
		require.NoError(t, mustertest.GrantFiles(t.Context(), w.client, user, "../../"+folder+"/rbac/role.yaml"))
	}
	w.config = plane.User(user)
}

// startHub runs a complete hub until stopHub is called, or the test ends.
func (w *system) startHub() {
	w.stopHub = w.runHub("hub", manager.Options{})
}

// runHub runs a complete hub, and starts it again when it ends because its store was restored, as a Deployment would.
func (w *system) runHub(name string, options manager.Options) (stop func()) {
	config := rest.CopyConfig(w.config)
	config.Wrap(w.count)
	options.Logger = logger(w.whole, name)
	return mustertest.Run(w.whole, name, func(ctx context.Context) error {
		for {
			err := serveHub(ctx, config, options, w.options)
			// A busy machine delays the renewal of a Lease. A Deployment starts the program again.
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "leader election lost") {
				return err
			}
		}
	})
}

// serveHub is the program of a hub.
func serveHub(ctx context.Context, config *rest.Config, options manager.Options, o assembly.HubOptions) error {
	options.Scheme = newScheme()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller = ctrlconfig.Controller{SkipNameValidation: new(true)}
	for ctx.Err() == nil {
		mgr, err := manager.New(config, options)
		if err == nil {
			err = assembly.SetupHub(ctx, mgr, o)
		}
		if err == nil {
			err = mgr.Start(ctx)
		}
		var rewound *storeversion.RewoundError
		if err != nil && !errors.As(err, &rewound) {
			return err
		}
	}
	return nil
}

// count counts the requests of a client.
func (w *system) count(next http.RoundTripper) http.RoundTripper {
	return counted{RoundTripper: w.wire.Wrap(next), next: next}
}

// counted lets clients find the transport below, whose connections they close.
type counted struct {
	http.RoundTripper
	next http.RoundTripper
}

// WrappedRoundTripper implements the interface of package net of apimachinery.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }

func (w *system) newMember(name string) *member {
	w.t.Helper()
	return w.newMemberOn(name, memberPlanes.borrow(w.t))
}

func (w *system) newMemberOn(name string, plane *localplane.Plane) *member {
	t := w.t
	m := &member{name: name, plane: plane, hub: func(*rest.Config) {}, noted: make(chan struct{}, 1)}
	m.client = mustertest.Client(t, m.plane.Config(), newScheme())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}
	require.NoError(t, m.client.Create(t.Context(), namespace))
	m.record(t)
	return m
}

// token returns the join.yaml of a JoinToken with automatic acceptance.
func (w *system) token(name string) []byte {
	token := &membershipv1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: name},
		Spec:       membershipv1alpha1.JoinTokenSpec{AutoAccept: true},
	}
	w.eventually("JoinToken "+name+" is created", func() error {
		return client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), token))
	})
	var secret corev1.Secret
	w.eventually("JoinToken "+name+" has a credential", func() error {
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(token), &secret); err != nil {
			return err
		}
		_, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
		return err
	})
	return secret.Data[registration.BootstrapKey]
}

// install stores a join.yaml where the agent reads it.
func (m *member) install(t testing.TB, joinYAML []byte) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret},
		Data:       map[string][]byte{registration.BootstrapKey: joinYAML},
	}
	if client.IgnoreNotFound(m.client.Delete(t.Context(), secret.DeepCopy())) == nil {
		require.NoError(t, m.client.Create(t.Context(), secret))
	}
}

// start runs the complete agent of a member until its stop is called, or the test ends.
func (w *system) start(m *member) {
	options := assembly.AgentOptions{Membership: agent.Options{
		Name: m.name, ClusterID: m.id, Log: logger(w.whole, m.name), HubConfig: func(config *rest.Config) {
			m.hub(config)
			config.Wrap(w.count)
		},
	}}
	options.Works.Log = logger(w.whole, m.name+"-works")
	config := m.plane.Config()
	config.Wrap(w.count)
	m.stop = mustertest.StartManager(w.whole, config, manager.Options{
		Logger: logger(w.whole, m.name), Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}, func(mgr manager.Manager) error { return assembly.SetupAgent(w.whole.Context(), mgr, options) })
}

func (w *system) setPeriod(name string) {
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.eventually("MemberCluster "+name+" exists", func() error {
		return w.client.Get(w.t.Context(), client.ObjectKeyFromObject(cluster), cluster)
	})
	mustertest.Change(w.t, w.client, cluster, func(c *membershipv1alpha1.MemberCluster) {
		c.Spec.HeartbeatPeriodSeconds = period
	})
}

// waitUntilJoined waits until the hub reports the member as joined and healthy.
func (w *system) waitUntilJoined(name string) {
	w.t.Helper()
	w.eventually(name+" is joined and healthy", func() error { return w.conditions(name, metav1.ConditionTrue) })
}

// waitUntilJoinedAs waits until the member is joined under the UID of a new MemberCluster.
func (w *system) waitUntilJoinedAs(cluster *membershipv1alpha1.MemberCluster) {
	w.t.Helper()
	w.eventually(cluster.Name+" is joined again under its new UID", func() error {
		self := &membershipv1alpha1.Membership{}
		key := client.ObjectKey{Namespace: "member-" + cluster.Name, Name: membership.MembershipName}
		if err := w.client.Get(w.t.Context(), key, self); err != nil {
			return err
		}
		if self.Spec.MemberUID != cluster.UID {
			return fmt.Errorf("Membership is of MemberCluster %s", self.Spec.MemberUID)
		}
		return w.conditions(cluster.Name, metav1.ConditionTrue)
	})
}

func (w *system) conditions(name string, healthy metav1.ConditionStatus) error {
	var cluster membershipv1alpha1.MemberCluster
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &cluster); err != nil {
		return err
	}
	conditions := cluster.Status.Conditions
	if meta.IsStatusConditionTrue(conditions, membershipv1alpha1.ConditionJoined) &&
		meta.IsStatusConditionPresentAndEqual(conditions, membershipv1alpha1.ConditionHealthy, healthy) {
		return nil
	}
	var all []string
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Message))
	}
	return fmt.Errorf("phase %s: %s", cluster.Status.Phase, strings.Join(all, "; "))
}

func (w *system) eventually(expected string, check func() error) {
	w.t.Helper()
	mustertest.Eventually(w.t, timeout, expected, check)
}

func logger(t testing.TB, name string) logr.Logger {
	if os.Getenv("MUSTER_TEST_LOGS") == "" {
		return logr.Discard()
	}
	return testr.NewWithInterface(t, testr.Options{LogTimestamp: true}).WithName(name)
}
