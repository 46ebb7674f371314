package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	uidA = "aaaaaaaa-0000-4000-8000-000000000000"
	uidB = "bbbbbbbb-0000-4000-8000-000000000000"
)

// TestSecret_Changes checks the condition Reachable for the changes of a Secret.
func TestSecret_Changes(t *testing.T) {
	runner := newRecorder()
	h := startHub(t, newMemory(t), fleet.Options{Runners: []fleet.Runner{runner}})
	a, b := newFake(t, uidA), newFake(t, uidB)

	h.member("life", nil)
	missing := h.reachable("life", v1alpha1.ReasonKubeConfigMissing)
	require.Contains(t, missing.Message, "muster-connections/life")
	runner.requireNotCalled(t)

	h.secret("life", map[string]string{"server": a.URL})
	require.Contains(t, h.reachable("life", v1alpha1.ReasonKubeConfigInvalid).Message, "token: must be set")
	runner.requireNotCalled(t)

	h.secret("life", a.data())
	h.reachable("life", v1alpha1.ReasonReachable)
	c := runner.called(t)
	require.Equal(t, "life", c.Cluster.Name)
	requireWorking := func(f *fake) {
		t.Helper()
		f.requests.take()
		status, err := c.get("/mine")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, f.requests.take(), "GET /mine")
	}
	requireWorking(a)
	requireEndpoint := func(server string) {
		t.Helper()
		h.Eventually("status.endpoint has the server "+server, func() error {
			endpoint := h.get("life").Status.Endpoint
			if endpoint == nil {
				return orError(server == "", "no endpoint")
			}
			return orError(endpoint.Server == server && len(endpoint.CABundle) > 0, "the server is %s", endpoint.Server)
		})
	}
	requireEndpoint(a.URL)

	// An invalid kubeconfig: the hub uses the previous content.
	h.secret("life", map[string]string{"value": "s3cr3t: ["})
	invalid := h.reachable("life", v1alpha1.ReasonKubeConfigInvalid)
	require.Contains(t, invalid.Message, "value: is not a kubeconfig. The hub uses the previous content until the "+
		"Secret is valid.")
	require.NotContains(t, invalid.Message, "s3cr3t")
	requireWorking(a)

	// Another cluster: the hub uses the previous content.
	h.secret("life", b.data())
	require.Contains(t, h.reachable("life", v1alpha1.ReasonOtherCluster).Message, uidB)
	requireWorking(a)
	require.NotContains(t, b.requests.take(), "GET /mine", "another cluster receives only requests for its identity")
	requireEndpoint(a.URL)

	// A credential that the member does not accept: the hub uses the previous content.
	wrong := a.data()
	wrong["token"] = "bad"
	h.secret("life", wrong)
	h.reachable("life", v1alpha1.ReasonUnauthorized)
	requireWorking(a)
	tries := 0
	h.Eventually("the hub retries", func() error {
		tries += len(a.requests.take())
		return orError(tries >= 8, "%d requests", tries)
	})
	require.LessOrEqual(t, a.open.Load(), int32(5), "failed attempts leave no connections")

	// Another address of the same cluster, with another authority and credential.
	b.uid.Store(uidA)
	b.token.Store("better")
	h.secret("life", b.data())
	h.reachable("life", v1alpha1.ReasonReachable)
	h.Eventually("requests go to the new address", func() error {
		b.requests.take()
		_, err := c.get("/mine")
		if err != nil {
			return err
		}
		return orError(len(b.requests.take()) > 0, "no requests")
	})
	requireWorking(b)
	requireEndpoint(b.URL)
	runner.requireNotCalled(t)

	// The credential that is in use becomes invalid.
	b.token.Store("best")
	h.reachable("life", v1alpha1.ReasonUnauthorized)
	h.secret("life", b.data())
	h.reachable("life", v1alpha1.ReasonReachable)
	requireWorking(b)
	runner.requireNotCalled(t)

	// The Secret is deleted and created again.
	require.NoError(t, h.Client.Delete(t.Context(), secretOf("life")))
	h.reachable("life", v1alpha1.ReasonKubeConfigMissing)
	requireEndpoint("")
	c.wait(t)
	_, err := c.get("/mine")
	require.Error(t, err, "the config of a runner that has returned is not usable")
	h.secret("life", b.data())
	h.reachable("life", v1alpha1.ReasonReachable)
	c = runner.called(t)
	requireWorking(b)

	// A reference to a namespace in which the hub reads no Secrets.
	h.change("life", func(m *v1alpha1.MemberCluster) { m.Spec.KubeConfigSecretRef.Namespace = "kube-system" })
	require.Contains(t, h.reachable("life", v1alpha1.ReasonKubeConfigInvalid).Message,
		"spec.kubeConfigSecretRef.namespace")
	c.wait(t)
	h.change("life", func(m *v1alpha1.MemberCluster) { m.Spec.KubeConfigSecretRef.Namespace = "" })
	h.reachable("life", v1alpha1.ReasonReachable)
	c = runner.called(t)

	// No reference: the condition is removed.
	h.change("life", func(m *v1alpha1.MemberCluster) { m.Spec.KubeConfigSecretRef = nil })
	c.wait(t)
	h.Eventually("the condition is removed", func() error {
		return orError(meta.FindStatusCondition(h.get("life").Status.Conditions, v1alpha1.ConditionReachable) == nil,
			"the condition exists")
	})
	requireEndpoint("")
	runner.requireNotCalled(t)
	for _, reason := range []string{v1alpha1.ReasonKubeConfigMissing, v1alpha1.ReasonOtherCluster,
		v1alpha1.ReasonReachable} {
		h.event("life", reason)
	}
}

// event waits for an Event about a member with a reason, and returns its note.
func (h *hub) event(member, reason string) (note string) {
	h.T.Helper()
	h.Eventually("an Event of "+member+" has the reason "+reason, func() error {
		var events eventsv1.EventList
		if err := h.Client.List(h.T.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Regarding.Name == member && e.Reason == reason {
				note = e.Note
				return nil
			}
		}
		return fmt.Errorf("none of %d Events", len(events.Items))
	})
	return note
}

// TestSecret_FirstConnectionIsVerified checks that the first connection of a hub that was started recently is verified
// as well.
func TestSecret_FirstConnectionIsVerified(t *testing.T) {
	runner := newRecorder()
	h := startHub(t, newMemory(t), fleet.Options{Runners: []fleet.Runner{runner}})
	for _, tc := range []struct {
		name, reason string
		spec         string // spec.clusterID
		property     string // that the agent reports
		want         string
	}{
		{"right", "the cluster ID is the UID of kube-system", uidA, "", v1alpha1.ReasonReachable},
		{"wrong", "the cluster ID is another UID", uidB, "", v1alpha1.ReasonOtherCluster},
		{"free", "a cluster ID that is not a UID is not compared", "edge-17", "", v1alpha1.ReasonReachable},
		{"agent", "the UID that the agent reports overrides the cluster ID", uidB, uidA, v1alpha1.ReasonReachable},
		{"liar", "the agent reports another UID", "edge-18", uidB, v1alpha1.ReasonOtherCluster},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFake(t, uidA)
			h := &hub{Hub: &testkit.Hub{T: t, Client: h.Client}}
			name := "first-" + tc.name
			h.member(name, nil, func(m *v1alpha1.MemberCluster) { m.Spec.ClusterID = tc.spec })
			if tc.property != "" {
				h.status(name, func(m *v1alpha1.MemberCluster) {
					m.Status.Properties = []v1alpha1.Property{{Name: "membership.muster.dev/kube-system-uid", Value: tc.property}}
				})
			}
			h.secret(name, f.data())
			h.reachable(name, tc.want)
			c := runner.called(t)
			require.Equal(t, name, c.Cluster.Name)
			_, err := c.get("/mine")
			if tc.want == v1alpha1.ReasonReachable {
				require.NoError(t, err)
				// An agent joins and reports another UID.
				h.status(name, func(m *v1alpha1.MemberCluster) {
					m.Status.Properties = []v1alpha1.Property{{Name: "membership.muster.dev/kube-system-uid", Value: uidB}}
				})
				h.reachable(name, v1alpha1.ReasonOtherCluster)
				c.wait(t)
				_, err = c.get("/mine")
				require.Error(t, err, "connections to another cluster are closed")
				c = runner.called(t)
				_, err = c.get("/mine")
			}
			require.ErrorContains(t, err, "the identity of the member is not verified yet")
		})
	}
}

// TestSecret_Shared checks that several members can reference one Secret, and that a Secret without a reference is not
// read.
func TestSecret_Shared(t *testing.T) {
	h := startHub(t, newMemory(t), fleet.Options{})
	f := newFake(t, uidA)
	h.secret("shared", f.data())
	t.Cleanup(func() { _ = h.Client.Delete(context.Background(), secretOf("shared")) })
	name := func(m *v1alpha1.MemberCluster) { m.Spec.KubeConfigSecretRef.Name = "shared" }
	h.member("shared-1", nil, name)
	h.member("shared-2", nil, name)
	h.reachable("shared-1", v1alpha1.ReasonReachable)
	h.reachable("shared-2", v1alpha1.ReasonReachable)
	h.requests.take()
	other := secretOf("nobodys")
	h.Create(other)
	t.Cleanup(func() { _ = h.Client.Delete(context.Background(), other) })
	h.secret("shared", map[string]string{"server": "x"})
	h.reachable("shared-1", v1alpha1.ReasonKubeConfigInvalid)
	h.reachable("shared-2", v1alpha1.ReasonKubeConfigInvalid)
	require.NotContains(t, h.requests.take(), "GET /api/v1/namespaces/muster-connections/secrets/nobodys")
}
