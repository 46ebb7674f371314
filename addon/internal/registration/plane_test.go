package registration_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var plane = localplane.Shared{Options: localplane.Options{
	Name:    "addon-registration",
	Prepare: mustertest.Prepare(scheme, crds.Install),
}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

const registrationNamespace = membership.RegistrationNamespace

var credentials = []v1alpha1.RegistrationCredential{v1alpha1.RegistrationToken, v1alpha1.RegistrationCertificate}

// hub is an API server, with a Registrar whose user has the permissions of the folder rbac and those that it grants to
// agents.
type hub struct {
	*testkit.Hub
	*registration.Registrar
	on    testkit.Server
	wire  *wire
	clock *clocktesting.FakePassiveClock
}

var scheme = mustertest.Scheme(v1alpha1.AddToScheme)

func connect(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	return mustertest.Client(t, config, scheme)
}

// hubRules are the rules that the hub has itself, so that it can grant them to agents.
var hubRules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
	Verbs: []string{"get", "list", "create"}}}

// newHub returns a hub on a server in memory.
func newHub(t testing.TB) *hub {
	t.Helper()
	return newHubAt(t, testkit.MemoryServer{Server: testkit.Memory(t, scheme, crds.Install)})
}

// newHubOnPlane returns a hub on the control plane that tests share.
func newHubOnPlane(t testing.TB) *hub {
	t.Helper()
	return newHubAt(t, plane.ForTest(t))
}

func newHubAt(t testing.TB, on testkit.Server) *hub {
	t.Helper()
	h := &hub{Hub: testkit.NewHub(t, on.Config(), scheme), on: on, clock: clocktesting.NewFakePassiveClock(time.Now())}
	h.exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registrationNamespace}})
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "hub"}}
	all, own := roles(t)
	h.exists(all, own,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: all.Name}, Subjects: user,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: all.Name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name}, Subjects: user,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "given"}, Rules: hubRules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "given"}, Subjects: user,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "given"}},
	)
	h.wire = &wire{}
	h.Registrar = h.registrar(h.wire)
	return h
}

// registrar returns another Registrar with a separate transport.
func (h *hub) registrar(w *wire, change ...func(*registration.Options)) *registration.Registrar {
	h.T.Helper()
	config := h.config(w)
	c := connect(h.T, config)
	options := registration.Options{Client: c, Live: c, Config: config, Clock: h.clock}
	if memory, ok := h.on.(testkit.MemoryServer); ok { // Its configs contain no address.
		options.Server, options.CA = memory.URL(), memory.CertificateAuthority()
	}
	for _, f := range change {
		f(&options)
	}
	r, err := registration.New(options)
	require.NoError(h.T, err)
	return r
}

func (h *hub) config(w *wire) *rest.Config {
	config := h.on.User("hub")
	config.Wrap(w.wrap)
	return config
}

// roles returns the roles of the folder rbac.
func roles(t testing.TB) (*rbacv1.ClusterRole, *rbacv1.Role) {
	t.Helper()
	file, err := os.ReadFile("rbac/role.yaml")
	require.NoError(t, err)
	documents := strings.Split(strings.TrimPrefix(string(file), "---\n"), "---\n")
	require.Len(t, documents, 2)
	all, own := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[0]), all))
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), own))
	return all, own
}

func (h *hub) exists(objects ...client.Object) {
	h.T.Helper()
	for _, object := range objects {
		require.NoError(h.T, client.IgnoreAlreadyExists(h.Client.Create(h.T.Context(), object)))
	}
}

// member creates the namespace of a member. Its name begins with that of the test, so that tests do not conflict.
func (h *hub) member(name string) membership.Member {
	h.T.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-" + name}}
	h.Create(namespace)
	return membership.Member{Name: name, UID: types.UID("uid-" + name), Namespace: namespace.Name, Claim: "claim-" + name}
}

// request returns the request for an add-on with a Lease that may read and create ConfigMaps.
func (h *hub) request(member membership.Member, addon string,
	credential v1alpha1.RegistrationCredential) registration.Request {
	h.T.Helper()
	memberAddon := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: addon}}
	h.Create(memberAddon)
	return registration.Request{
		MemberAddon: memberAddon, Member: member, InstallNamespace: "on-member", Lease: true,
		Want: v1alpha1.TemplateRegistration{Credential: credential, Rules: hubRules},
	}
}

// registered calls Ensure until the registration is complete.
func (h *hub) registered(r *registration.Registrar, request registration.Request) registration.Result {
	h.T.Helper()
	var result registration.Result
	h.Holds("the agent is registered", func() bool {
		var err error
		result, err = r.Ensure(h.T.Context(), request)
		require.NoError(h.T, err)
		require.Nil(h.T, result.Problem)
		return result.Registration.State == "Registered"
	})
	return result
}

// agentConfig returns the client configuration of a program that mounts the Secret as a directory.
func (h *hub) agentConfig(secret *corev1.Secret) *rest.Config {
	h.T.Helper()
	folder := h.T.TempDir()
	for name, data := range secret.Data {
		require.NoError(h.T, os.WriteFile(filepath.Join(folder, name), data, 0o600))
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, registration.KubeconfigKey))
	require.NoError(h.T, err)
	if memory, ok := h.on.(testkit.MemoryServer); ok {
		config.Dial = memory.DialContext
		// client-go watches the files of a certificate until the end of the process.
		require.NoError(h.T, rest.LoadTLSFiles(config))
		config.CertFile, config.KeyFile = "", ""
	}
	return config
}

func (h *hub) agentOf(result registration.Result) client.Client {
	h.T.Helper()
	require.NotNil(h.T, result.Secret)
	return connect(h.T, h.agentConfig(result.Secret))
}

// wire counts requests, and can fail.
type wire struct {
	mu       sync.Mutex
	requests []string // verb and resource
	writes   int
	// failAt is the number of the write that fails, counted from 1. The write is not sent, or its response is lost.
	failAt int
	lose   bool
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		request := attributes(r)
		if request == "" { // discovery
			return next.RoundTrip(r)
		}
		fails, lose := w.record(request, r.Method != http.MethodGet)
		if fails && !lose {
			return nil, fmt.Errorf("broken before %s", request)
		}
		response, err := next.RoundTrip(r)
		if fails && err == nil {
			_ = response.Body.Close()
			return nil, fmt.Errorf("broken after %s", request)
		}
		return response, err
	})
}

func (w *wire) record(request string, write bool) (fails, lose bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, request)
	if write {
		w.writes++
	}
	return write && w.failAt == w.writes, w.lose
}

func (w *wire) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.requests...)
}

func (w *wire) of(request string) (n int) {
	for _, r := range w.all() {
		if r == request {
			n++
		}
	}
	return n
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.writes = nil, 0
}

// attributes returns the verb and the resource of a request, as in RBAC.
func attributes(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, rest := "", parts[min(2, len(parts)):]
	if parts[0] == "apis" {
		group, rest = parts[min(1, len(parts)-1)], parts[min(3, len(parts)):]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	if len(rest) == 0 {
		return ""
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete", http.MethodGet: "get"}[r.Method]
	if r.Method == http.MethodGet && len(rest) == 1 {
		verb = "list"
		if r.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	resource := rest[0]
	if len(rest) > 2 {
		resource += "/" + rest[2]
	}
	return strings.TrimSpace(verb + " " + strings.Trim(group+"/"+resource, "/"))
}

// objects returns the existing objects of an add-on on the hub.
func (h *hub) objects(member membership.Member, addon string) (names []string) {
	h.T.Helper()
	for _, kind := range registration.Kinds() {
		gvk, err := h.Client.GroupVersionKindFor(kind)
		require.NoError(h.T, err)
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		namespace := client.InNamespace(member.Namespace)
		if gvk.Kind == "Secret" {
			namespace = registrationNamespace
		}
		require.NoError(h.T,
			h.Client.List(context.Background(), list, namespace, client.MatchingLabels{v1alpha1.AddonLabel: addon}))
		for _, item := range list.Items {
			if gvk.Kind != "Secret" || strings.HasPrefix(item.Name, member.Namespace+".") {
				names = append(names, gvk.Kind+" "+item.Name)
			}
		}
	}
	return names
}
