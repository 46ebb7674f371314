package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
)

const (
	timeLimit = 3 * time.Minute
	interval  = 20 * time.Millisecond
)

// fakeHub is a hub that the test controls, so that it can also behave incorrectly.
type fakeHub struct {
	t         *testing.T
	c         client.Client
	config    *rest.Config
	name      string // of the member, and of the namespace of its JoinRequests
	bootstrap *registration.Bootstrap
	network   *testkit.Network // between agents and a server in memory
	period    int32

	mu     sync.Mutex
	answer func(*v1alpha1.JoinRequest) // processes a request; nil: admit
}

// An apiServer is a control plane or an API server in memory.
type apiServer interface{ Config() *rest.Config }

// memoryServer is an API server in memory, for tests in virtual time.
type memoryServer struct{ server *apiserver.Server }

func newMemory(t *testing.T) memoryServer {
	t.Helper()
	return memoryServer{testkit.Memory(t, mustertest.Scheme(v1alpha1.AddToScheme), crds.Install)}
}

// Config returns the config of an administrator.
func (m memoryServer) Config() *rest.Config { return m.server.Admin() }

// newFakeHub returns a hub with one registration namespace. Its RBAC is that of a real hub.
func newFakeHub(t *testing.T, p apiServer, name string) *fakeHub {
	t.Helper()
	config := p.Config()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	ctx := t.Context()
	m, inMemory := p.(memoryServer)
	if !inMemory { // newMemory installs the definitions
		require.NoError(t, crds.Install(ctx, c))
	}
	h := &fakeHub{t: t, c: c, config: config, name: name, period: 1}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: membership.AgentClusterRole},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberships"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberships/status"}, Verbs: []string{"update"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"heartbeat"},
				Verbs: []string{"get", "update"}},
		},
	}
	h.ensure(role)
	h.ensure(registration.BootstrapRole())
	h.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "bootstrap"}}
	h.ensure(account)
	h.ensure(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "bootstrap"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.BootstrapClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: name, Name: "bootstrap"}},
	})
	issued := &authenticationv1.TokenRequest{}
	require.NoError(t, c.SubResource("token").Create(ctx, account, issued))
	h.bootstrap = &registration.Bootstrap{
		Server: config.Host, CA: config.CAData, Token: issued.Status.Token, TokenName: "any",
		Key: []byte(strings.Repeat("k", 32)), Namespace: name,
	}
	if inMemory { // its config contains no address
		h.bootstrap.Server, h.bootstrap.CA = m.server.URL(), m.server.CertificateAuthority()
		h.network = &testkit.Network{Dial: m.server.DialContext}
	}
	return h
}

// connect changes a config with the address of the hub so that it reaches a server in memory.
func (h *fakeHub) connect(config *rest.Config) {
	if h.network != nil {
		config.Dial = h.network.DialContext
	}
}

func (h *fakeHub) ensure(object client.Object) {
	h.t.Helper()
	require.NoError(h.t, client.IgnoreAlreadyExists(h.c.Create(h.t.Context(), object)))
}

// serve answers JoinRequests until the test ends.
func (h *fakeHub) serve() *fakeHub {
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var list v1alpha1.JoinRequestList
			_ = h.c.List(ctx, &list, client.InNamespace(h.name))
			for i := range list.Items {
				if request := &list.Items[i]; request.Status.Answer == "" {
					h.mu.Lock()
					answer := h.answer
					h.mu.Unlock()
					if answer == nil {
						answer = h.admit
					}
					answer(request)
				}
			}
			<-time.After(interval)
		}
	}()
	h.t.Cleanup(func() { cancel(); <-done })
	return h
}

func (h *fakeHub) setAnswer(answer func(*v1alpha1.JoinRequest)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *fakeHub) memberNamespace() string { return "member-" + h.name }

func (h *fakeHub) issuer(kind v1alpha1.CredentialType) membership.Issuer {
	if kind == v1alpha1.CredentialCertificate {
		return &csr.Issuer{Client: h.c}
	}
	return &token.Issuer{Client: h.c, Lifetime: 10 * time.Minute}
}

func (h *fakeHub) member(claim string) membership.Member {
	return membership.Member{Name: h.name, UID: types.UID("uid-" + h.name), Namespace: h.memberNamespace(), Claim: claim}
}

// admit issues a credential for a request, like a real hub.
func (h *fakeHub) admit(request *v1alpha1.JoinRequest) {
	ctx := h.t.Context()
	if err := errors.Join(registration.Verify(request), registration.VerifyToken(request, h.bootstrap.Key)); err != nil {
		h.t.Errorf("invalid request of the agent: %v", err)
		return
	}
	member := h.member(registration.Fingerprint(request.Spec.ClaimKey))
	h.prepare(member, request.Spec.Credential.Type)
	credential, err := h.issue(ctx, member, request.Spec.Credential)
	if err != nil {
		return // the test has ended, or the plane is slow: retried
	}
	h.writeAnswer(request, v1alpha1.AnswerIssued, func(s *v1alpha1.JoinRequestStatus) {
		s.MemberName, s.MemberUID, s.Namespace, s.Credential = member.Name, member.UID, member.Namespace, &credential
	})
}

func (h *fakeHub) issue(ctx context.Context, member membership.Member,
	request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	for {
		credential, err := h.issuer(request.Type).Issue(ctx, member, request)
		if !errors.Is(err, membership.ErrPending) {
			return credential, err
		}
		<-time.After(interval)
	}
}

// prepare creates the objects of a member on the hub.
func (h *fakeHub) prepare(member membership.Member, kind v1alpha1.CredentialType) {
	ctx := h.t.Context()
	_ = h.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member.Namespace}})
	_ = h.c.Create(ctx, &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: membership.MembershipName},
		Spec: v1alpha1.MembershipSpec{
			MemberName: member.Name, MemberUID: member.UID, State: v1alpha1.StateJoin, Rejoin: true,
			HeartbeatPeriodSeconds: h.period,
			Leave:                  v1alpha1.LeavePolicy{Resources: v1alpha1.OrphanResources, DeadlineSeconds: 77},
		},
	})
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: member.Namespace, Name: membership.AgentName}
	if kind == v1alpha1.CredentialCertificate {
		subject = rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: csr.User(member.Claim)}
	}
	_ = h.c.Create(ctx, h.binding(subject))
}

func (h *fakeHub) binding(subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.memberNamespace(), Name: membership.AgentName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.AgentClusterRole},
		Subjects:   subjects,
	}
}

// writeAnswer writes an answer to the status of a request.
func (h *fakeHub) writeAnswer(request *v1alpha1.JoinRequest, answer v1alpha1.JoinAnswer,
	more func(*v1alpha1.JoinRequestStatus)) {
	request.Status = v1alpha1.JoinRequestStatus{Answer: answer, Claim: registration.Fingerprint(request.Spec.ClaimKey)}
	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionIssued, Status: metav1.ConditionTrue, Reason: string(answer), Message: "By hand.",
	})
	if more != nil {
		more(&request.Status)
	}
	_ = h.c.Status().Update(h.t.Context(), request)
}

// membership reads the Membership; nil if it does not exist.
func (h *fakeHub) membership() *v1alpha1.Membership {
	h.t.Helper()
	m := &v1alpha1.Membership{}
	err := h.c.Get(h.t.Context(), client.ObjectKey{Namespace: h.memberNamespace(), Name: membership.MembershipName}, m)
	require.NoError(h.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return m
}

// change changes the spec of the Membership.
func (h *fakeHub) change(change func(*v1alpha1.MembershipSpec)) {
	h.t.Helper()
	m := h.membership()
	before := m.DeepCopy()
	change(&m.Spec)
	require.NoError(h.t, h.c.Patch(h.t.Context(), m, client.MergeFrom(before)))
}

func (h *fakeHub) joined() bool {
	m := h.membership()
	return m != nil && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionJoined)
}

func (h *fakeHub) clean() bool {
	m := h.membership()
	if m == nil {
		return false
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionJoined)
	return c != nil && c.Reason == v1alpha1.ReasonCleanedUp
}

// memory is a Store in memory. Its record survives a restart of the agent, like a Secret.
type memory struct {
	mu     sync.Mutex
	record []byte
	after  func(operation string) // called after each change
}

func (m *memory) Load(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record, nil
}

func (m *memory) Save(_ context.Context, record []byte) error { return m.set("save", record) }

func (m *memory) Delete(context.Context) error { return m.set("delete", nil) }

func (m *memory) set(operation string, record []byte) error {
	m.mu.Lock()
	m.record = record
	after := m.after
	m.mu.Unlock()
	if after != nil {
		after(operation)
	}
	return nil
}

func (m *memory) parsed(t *testing.T) record {
	data, _ := m.Load(t.Context())
	r, err := parseRecord(data)
	require.NoError(t, err)
	return r
}

// deletableBootstrap is a BootstrapSource whose credential can be deleted, like a Secret.
type deletableBootstrap struct {
	bootstrap    *registration.Bootstrap
	deregistered atomic.Bool
}

func (f *deletableBootstrap) Load(context.Context) (*registration.Bootstrap, error) {
	if f.deregistered.Load() {
		return nil, nil
	}
	return f.bootstrap, nil
}

func (f *deletableBootstrap) Forget(context.Context) error {
	f.deregistered.Store(true)
	return nil
}

// wire records each request to the hub after its response.
type wire struct {
	mu    sync.Mutex
	seen  map[string]int
	after func(request string)
}

func (w *wire) config(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return tap{w, next} })
}

type tap struct {
	wire *wire
	next http.RoundTripper
}

func (t tap) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	path := strings.Split(request.URL.Path, "/")
	what := path[len(path)-1]
	if what == membership.LeaseName || what == membership.MembershipName || what == "status" ||
		strings.HasPrefix(what, "join-") {
		what = path[len(path)-2] + "/" + what
	}
	key := request.Method + " " + what
	if strings.Contains(request.URL.RawQuery, "watch=true") {
		key = "WATCH " + what
	}
	t.wire.mu.Lock()
	if t.wire.seen == nil {
		t.wire.seen = map[string]int{}
	}
	t.wire.seen[key]++
	after := t.wire.after
	t.wire.mu.Unlock()
	if after != nil {
		after(key)
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the connections to close.
func (t tap) WrappedRoundTripper() http.RoundTripper { return t.next }

// has reports whether a request was answered since the last take.
func (w *wire) has(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[key] > 0
}

// take returns the requests since the last take.
func (w *wire) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// shifted is a clock with a constant error.
type shifted struct {
	clock.RealClock
	mu sync.Mutex
	by time.Duration
}

func (s *shifted) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.RealClock.Now().Add(s.by)
}

func (s *shifted) shift(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += by
}

// phases records the steps that an agent has reported.
type phases struct {
	mu    sync.Mutex
	steps []lifecycle.AgentStep
}

func (p *phases) show(step lifecycle.AgentStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, step)
}

func (p *phases) last() lifecycle.AgentStep {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.steps) == 0 {
		return lifecycle.AgentStep{}
	}
	return p.steps[len(p.steps)-1]
}

// seen returns the phases in order.
func (p *phases) seen() (all []lifecycle.AgentPhase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, step := range p.steps {
		all = append(all, step.Phase)
	}
	return all
}

// running is a running agent.
type running struct {
	phases
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// run runs an agent of the plane until it is stopped, or the test ends.
func (h *fakeHub) run(o Options) *running {
	h.t.Helper()
	log := logr.Discard()
	if testing.Verbose() {
		log = testr.NewWithOptions(h.t, testr.Options{Verbosity: 1})
	}
	return h.runLogged(log, o)
}

func (h *fakeHub) runLogged(log logr.Logger, o Options) *running {
	h.t.Helper()
	if o.Bootstrap == nil {
		o.Bootstrap = BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return h.bootstrap, nil })
	}
	if o.Store == nil {
		o.Store = &memory{}
	}
	if o.Name == "" {
		o.Name = h.name
	}
	configure := o.HubConfig
	o.HubConfig = func(config *rest.Config) {
		h.connect(config)
		if configure != nil {
			configure(config)
		}
	}
	r := &running{t: h.t, done: make(chan struct{})}
	if o.OnPhase == nil {
		o.OnPhase = r.show
	}
	a, err := newAgent(h.config, log, o)
	require.NoError(h.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.err = a.Start(ctx)
	}()
	h.t.Cleanup(r.stop)
	return r
}

func (r *running) stop() {
	r.cancel()
	r.ended()
}

// ended waits until the agent has ended.
func (r *running) ended() {
	r.t.Helper()
	select {
	case <-r.done:
		require.NoError(r.t, r.err)
	case <-time.After(timeLimit):
		r.t.Fatal("the agent does not end")
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	mustertest.Holds(t, timeLimit, what, is)
}

func requirePhase(t *testing.T, r *running, phase lifecycle.AgentPhase) {
	t.Helper()
	mustertest.Eventually(t, timeLimit, "the agent is "+string(phase), func() error {
		if last := r.last(); last.Phase != phase {
			return fmt.Errorf("the agent is %s: %s", last.Phase, last.Message)
		}
		return nil
	})
}

// unresponsive returns the config of an API server that accepts connections and sends no responses.
func unresponsive(t *testing.T) *rest.Config {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return &rest.Config{Host: "http://member.example.com", Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		wg.Go(func() {
			_, _ = io.Copy(io.Discard, far)
			_ = far.Close()
		})
		return near, nil
	}}
}

// fastClock is a clock that runs ten times as fast, and whose timers are short, for tests of slow polling.
type fastClock struct {
	clock.RealClock
	began time.Time
}

func newFastClock() *fastClock { return &fastClock{began: time.Now()} }

func (h *fastClock) Now() time.Time { return h.began.Add(10 * time.Since(h.began)) }

func (h *fastClock) NewTimer(d time.Duration) clock.Timer {
	return h.RealClock.NewTimer(min(d, 200*time.Millisecond))
}

// faultyHub is a proxy of a hub that can refuse all requests, or make them fail.
type faultyHub struct {
	refuses atomic.Bool
	fails   atomic.Bool
	refused sync.Map // the refused requests, by the last element of their path
}

func (m *faultyHub) config(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if m.fails.Load() {
				return nil, errors.New("broken on purpose")
			}
			if !m.refuses.Load() {
				return next.RoundTrip(request)
			}
			path := strings.Split(request.URL.Path, "/")
			m.refused.Store(path[len(path)-1], true)
			status, err := json.Marshal(apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "any",
				errors.New("just started")).Status())
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(status)), Request: request,
			}, err
		})
	})
}
