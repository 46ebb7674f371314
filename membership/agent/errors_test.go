package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// logBuffer records the log at the default verbosity.
type logBuffer struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logBuffer) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all.WriteString(line + "\n")
	}, funcr.Options{})
}

func (l *logBuffer) times(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

func TestRequestFailure(t *testing.T) {
	requests := schema.GroupResource{Group: "membership.muster.dev", Resource: joinRequests}
	forbidden := func(why string) error { return apierrors.NewForbidden(requests, "join-1", errors.New(why)) }
	terminating := apierrors.NewForbidden(requests, "join-1", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, tc := range []struct {
		reason string
		err    error
		want   lifecycle.JoinRequestState
	}{
		{"the hub has removed the request", errNoRequest, lifecycle.JoinRequestNoRequest},
		{"no bootstrap credential", errNoBootstrap, lifecycle.JoinRequestNoCredential},
		{"an invalid bootstrap credential", homeError{&membership.InvalidError{Field: "kind", Problem: "must be another"}},
			lifecycle.JoinRequestNoCredential},
		{"the member denies access to the Secret",
			homeError{apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "muster-bootstrap", nil)},
			lifecycle.JoinRequestNotAskable},
		{"the bootstrap credential is unauthorized", apierrors.NewUnauthorized("no"), lifecycle.JoinRequestRefused},
		{"the bootstrap credential is forbidden", forbidden("no RBAC policy matched"), lifecycle.JoinRequestRefused},
		{"the quota is exceeded", forbidden("exceeded quota: muster, requested: count/joinrequests=1, used: 500, " +
			"limited: 500"), lifecycle.JoinRequestFull},
		{"the status of the quota is unknown", forbidden("status unknown for quota: muster, resources: count/joinrequests"),
			lifecycle.JoinRequestFull},
		{"the API rejects the request as invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "JoinRequest"}, "join-1", nil),
			lifecycle.JoinRequestUnfit},
		{"the namespace is terminating", terminating, lifecycle.JoinRequestUnfit},
		{"the server has no JoinRequests", apierrors.NewNotFound(requests, "join-1"), lifecycle.JoinRequestUnfit},
		{"the hub is overloaded", apierrors.NewTooManyRequestsError("later"), lifecycle.JoinRequestUnreachable},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, message := requestFailure(tc.err)
			require.Equal(t, tc.want, got)
			require.NotEmpty(t, message)
		})
	}
}

// TestJoin_UnknownAuthority checks the error for a hub whose certificate is of another CA than that in the bootstrap
// credential.
func TestJoin_UnknownAuthority(t *testing.T) { testkit.Virtual(t, testJoinUnknownAuthority) }

func testJoinUnknownAuthority(t *testing.T) {
	other := newMemory(t)
	h := newFakeHub(t, newMemory(t), "unreachable")
	wrong := *h.bootstrap
	wrong.Server = other.server.URL()
	logged := &logBuffer{}
	bootstrap := BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return &wrong, nil })
	shown, w := &phases{}, &wire{}
	a, err := newAgent(h.config, logged.logger(),
		Options{Name: h.name, Store: &memory{}, Bootstrap: bootstrap, Clock: newFastClock(), OnPhase: shown.show,
			HubConfig: func(config *rest.Config) {
				w.config(config)
				config.Dial = other.server.DialContext
			}})
	require.NoError(t, err)
	stop := mustertest.Run(t, "the agent", a.Start)
	tries := 0
	eventually(t, "the agent retries", func() bool {
		for _, n := range w.take() {
			tries += n
		}
		return tries > 2
	})
	stop()
	require.Contains(t, shown.last().Message, "The hub cannot be reached. The agent retries. (tls: failed to verify "+
		"certificate: x509: ")
	require.Equal(t, 1, logged.times("failed to verify certificate: x509: "), "the error is logged once")
}

// TestRequestJoin_SignedOnce checks that a request is signed when the request or its proof changes, and not at each
// read of its answer.
func TestRequestJoin_SignedOnce(t *testing.T) {
	hub := httptest.NewServer(http.NotFoundHandler())
	defer hub.Close()
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	bootstrap := &registration.Bootstrap{Server: hub.URL, Token: "t", TokenName: "one", Key: []byte("k"), Namespace: "n"}
	a := &agent{
		state: persistedState{claim: claim, record: record{ClusterID: "id", Request: &recordedRequest{}}},
		Options: Options{
			Bootstrap: BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return bootstrap, nil }),
			HubConfig: func(*rest.Config) {},
		},
	}
	defer a.requests.disconnect()
	requestJoin := func() *v1alpha1.JoinRequest {
		mine, _, err := a.requestJoin(t.Context())
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		return mine
	}
	first := requestJoin()
	require.Same(t, first, requestJoin())
	a.state.record.Request = &recordedRequest{MemberUID: "uid"}
	second := requestJoin()
	require.NotSame(t, first, second)
	other := *bootstrap
	other.TokenName = "two"
	bootstrap = &other
	require.Equal(t, "two", requestJoin().Spec.Token.Name)
}

// TestJoin_MemberDeniesBootstrapCredential checks the error if the agent's own cluster denies access to the bootstrap
// credential.
func TestJoin_MemberDeniesBootstrapCredential(t *testing.T) {
	testkit.Virtual(t, testJoinMemberDeniesBootstrapCredential)
}

func testJoinMemberDeniesBootstrapCredential(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "ownside").serve()
	r := h.run(Options{Clock: newFastClock(),
		Bootstrap: BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "muster-bootstrap",
				errors.New("no RBAC policy matched"))
		})})
	eventually(t, "the message does not contain the error", func() bool {
		return strings.HasPrefix(r.last().Message, "The agent cannot create a JoinRequest for a local reason, and retries. "+
			"(secrets \"muster-bootstrap\" is forbidden")
	})
	require.Equal(t, lifecycle.Registering, r.last().Phase, "the hub has not rejected the agent")
}

// TestHeartbeat_FailureIsLoggedOnce checks the reports of a joined agent whose hub fails.
func TestHeartbeat_FailureIsLoggedOnce(t *testing.T) {
	testkit.Virtual(t, testHeartbeatFailureIsLoggedOnce)
}

func testHeartbeatFailureIsLoggedOnce(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "silent").serve()
	logged := &logBuffer{}
	broken := &faultyHub{}
	r := h.runLogged(logged.logger(), Options{HubConfig: func(c *rest.Config) { broken.config(c) }})
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	broken.fails.Store(true)
	eventually(t, "no log says that heartbeats fail", func() bool { return logged.times("broken on purpose") > 0 })
	<-time.After(2 * time.Second)
	require.Equal(t, 1, logged.times("broken on purpose"))
	broken.fails.Store(false)
	eventually(t, "no log says that heartbeats succeed again",
		func() bool { return logged.times("accepts heartbeats again") == 1 })
}
