package permissionmatrix

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/mustertest"
)

// TestFlowControl_ClassifiesAgents checks on an API server that the manifests of the hub have valid FlowSchemas, that
// requests of agents of both kinds and of bootstrap credentials are classified as those of agents, that heartbeats are
// not, and that the requests of the hub have a separate FlowSchema.
func TestFlowControl_ClassifiesAgents(t *testing.T) {
	p := plane.ForTest(t)
	c := mustertest.Client(t, p.Config(), mustertest.Scheme())
	objects, err := deploy.Hub()
	require.NoError(t, err)
	names := map[string]string{} // names of FlowSchemas, by UID
	var levels []string
	for _, object := range objects {
		switch object.GetKind() {
		case "PriorityLevelConfiguration":
			levels = append(levels, object.GetName())
		case "FlowSchema":
		default:
			continue
		}
		require.NoError(t, c.Create(t.Context(), object), "%s %s", object.GetKind(), object.GetName())
		if object.GetKind() == "FlowSchema" {
			names[string(object.GetUID())] = object.GetName()
		}
	}
	require.Equal(t, []string{"muster-agents"}, levels)
	require.Len(t, names, 2)

	const memberships = "/apis/membership.muster.dev/v1alpha1/namespaces/member-a/memberships"
	const leases = "/apis/coordination.k8s.io/v1/namespaces/member-a/leases/heartbeat"
	account := func(namespace, name string) rest.ImpersonationConfig {
		user, groups := serviceAccount(namespace, name)
		return rest.ImpersonationConfig{UserName: user, Groups: groups}
	}
	agent, certificate := account(memberA, "muster-agent"), rest.ImpersonationConfig{
		UserName: "muster:member:0123", Groups: []string{"system:authenticated"},
	}
	for _, test := range []struct {
		reason       string
		as           rest.ImpersonationConfig
		method, path string
		want         string // empty: neither FlowSchema
	}{
		{"the report of an agent", agent, http.MethodPut, memberships + "/self/status", "muster-agents"},
		{"the watch of an agent", agent, http.MethodGet, memberships, "muster-agents"},
		{"an agent with a certificate", certificate, http.MethodPatch,
			"/apis/work.muster.dev/v1alpha1/namespaces/member-a/works/a/status", "muster-agents"},
		{"a stolen bootstrap credential", account("muster-registration", "join-edge"), http.MethodPost,
			"/apis/membership.muster.dev/v1alpha1/namespaces/muster-registration/joinrequests", "muster-agents"},
		{"a heartbeat", agent, http.MethodPut, leases, ""},
		{"a heartbeat with a certificate", certificate, http.MethodPut, leases, ""},
		{"another program", account("shop", "web"), http.MethodGet, "/api/v1/namespaces/shop/configmaps", ""},
		{"the hub", account(programs, "muster-hub"), http.MethodGet, memberships, "muster-hub"},
		{"the hub", account(programs, "muster-hub"), http.MethodPut, leases, "muster-hub"},
	} {
		config := rest.CopyConfig(p.Config())
		config.Impersonate = test.as
		requests, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		mustertest.Eventually(t, time.Minute, test.reason+" is classified", func() error {
			request, err := http.NewRequestWithContext(t.Context(), test.method, config.Host+test.path, nil)
			require.NoError(t, err)
			response, err := requests.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			schema := response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
			if schema == "" || names[schema] != test.want {
				return &unclassified{schema, names[schema], test.want}
			}
			return nil
		})
	}
	level := &unstructured.Unstructured{}
	level.SetAPIVersion("flowcontrol.apiserver.k8s.io/v1")
	level.SetKind("FlowSchema")
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "muster-hub"}, level))
	conditions, _, err := unstructured.NestedSlice(level.Object, "status", "conditions")
	require.NoError(t, err)
	for _, condition := range conditions {
		require.Equal(t, "False", condition.(map[string]any)["status"],
			"the priority level of the FlowSchema exists: %v", condition)
	}
}

type unclassified struct{ uid, got, want string }

func (u *unclassified) Error() string {
	return "the FlowSchema has UID " + u.uid + " and is " + u.got + ", want " + u.want
}
