package hub_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requester returns a client with a bootstrap credential, which may only create and get requests.
func (h *testHub) requester(bootstrap *registration.Bootstrap) client.Client {
	h.T.Helper()
	config := bootstrap.RESTConfig()
	h.connect(config)
	c, err := client.New(config, client.Options{Scheme: newScheme(), Mapper: h.Client.RESTMapper()})
	require.NoError(h.T, err)
	return c
}

// requestSender creates JoinRequests without an agent.
type requestSender struct {
	request *v1alpha1.JoinRequest
	claim   *registration.ClaimKey
	private []byte
	method  registration.Method
}

// createRequest creates a JoinRequest. It retries after a conflict, like agents: the API server counts the requests in
// the status of a ResourceQuota, and fails if other requests changed the status at the same time.
func createRequest(t testing.TB, c client.Client, a *requestSender) {
	t.Helper()
	require.NoError(t, retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		return c.Create(t.Context(), a.request)
	}))
}

// newRequestSender returns a requestSender whose request is proved by bootstrap, if that is not nil. Its cluster ID
// is that of a test agent with the same name.
func newRequestSender(t testing.TB, name string, method registration.Method, bootstrap *registration.Bootstrap,
	changes ...func(*v1alpha1.JoinRequest)) *requestSender {
	t.Helper()
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	credential, private, err := method.Request(claim, nil)
	require.NoError(t, err)
	request := &v1alpha1.JoinRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace},
		Spec:       v1alpha1.JoinRequestSpec{ClusterID: "id-" + name, Name: name, Credential: credential},
	}
	for _, change := range changes {
		change(request)
	}
	require.NoError(t, registration.Sign(request, claim, bootstrap))
	return &requestSender{request: request, claim: claim, private: private, method: method}
}

// config returns the config of the agent with the issued credential.
func (a *requestSender) config(h *testHub, bootstrap *registration.Bootstrap,
	answered *v1alpha1.JoinRequest) *rest.Config {
	h.T.Helper()
	material, err := a.method.Open(a.claim, a.private, *answered.Status.Credential)
	require.NoError(h.T, err)
	base := bootstrap.RESTConfig()
	h.connect(base)
	config, err := material.Config(base, a.claim)
	require.NoError(h.T, err)
	return config
}
