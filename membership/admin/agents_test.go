package admin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest"
)

func TestAgentSecrets_Names(t *testing.T) {
	for name, want := range map[string]bool{
		"muster-agent": true, "muster-bootstrap": true, "muster-agent-two": true, "muster-bootstrap-two": true,
		"muster-agents": false, "muster": false, "muster-push-token": false,
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeOpaque}
		require.Equal(t, want, isAgents(secret), name)
		secret.Type = corev1.SecretTypeServiceAccountToken
		require.False(t, isAgents(secret), "token Secret of a ServiceAccount, named %s", name)
	}
	require.Equal(t, []string{"muster-agent-two", "muster-bootstrap-two"}, secretsFor("two").names())
	require.Equal(t, []string{"muster-agent", "muster-bootstrap"}, secretsFor("").names())
}

// TestAgentSecret finds agents of other hubs, with and without permission to list Secrets.
func TestAgentSecret(t *testing.T) {
	testkit.Virtual(t, testAgentSecret)
}

func testAgentSecret(t *testing.T) {
	f := newFleet(t, newMemory(t))
	ctx := t.Context()
	const namespace = "several"
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	t.Cleanup(func() { f.discard(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}) })
	getOnly, err := connect(Member, f.user("blind", rulesOf([]right{{resource: "secrets", verbs: "get"}})))
	require.NoError(t, err)
	find := func(c *cluster, except agentSecrets) string {
		t.Helper()
		var name string
		mustertest.Holds(f.t, timeLimit, "agentSecret returns no error", func() bool {
			var err error
			name, err = agentSecret(ctx, c, namespace, except)
			return err == nil
		})
		return name
	}
	add := func(name string) {
		f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	add("other")
	require.Empty(t, find(f.c, agentSecrets{}))
	require.Empty(t, find(getOnly, agentSecrets{}))
	add("muster-agent-two")
	require.Equal(t, "muster-agent-two", find(f.c, agentSecrets{}))
	require.Equal(t, "muster-agent-two", find(f.c, secretsFor("one")))
	require.Empty(t, find(f.c, secretsFor("two")))
	require.Empty(t, find(getOnly, agentSecrets{}), "the name cannot be derived")
	add("muster-bootstrap")
	require.Equal(t, "muster-bootstrap", find(getOnly, secretsFor("two")))
	require.Empty(t, find(getOnly, secretsFor("")))
	require.Equal(t, "muster-agent-two", find(f.c, secretsFor("")))
	_, err = agentSecret(ctx, f.without(), namespace, agentSecrets{})
	require.True(t, denied(err), "%v", err)
}

// without returns the cluster for a user without permissions.
func (f *fleet) without() *cluster {
	f.t.Helper()
	c, err := connect(Member, f.plane.User("nobody-at-all"))
	require.NoError(f.t, err)
	return c
}

// TestHubNames checks that the name of a hub must be valid in the name of a Secret.
func TestHubNames(t *testing.T) {
	var invalid *membership.InvalidError
	for _, name := range []string{"A", "a b", "-", "a."} {
		require.ErrorAs(t, Clean(t.Context(), &rest.Config{}, CleanOptions{Hub: name}), &invalid, name)
		require.Equal(t, "Hub", invalid.Field)
	}
}

// TestCleanOneHub checks that Clean does not change objects of a hub that has access to the member.
func TestCleanOneHub(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	_, err := Join(ctx, f.config, f.config, JoinOptions{Name: "cleaned-one", Timeout: -1})
	require.NoError(t, err)
	reported, called := &steps{}, false
	unprepare := func(context.Context, client.Client) (string, error) { called = true; return "", nil }
	require.NoError(t, Clean(ctx, f.config, CleanOptions{Hub: "two", Unprepare: unprepare, Progress: reported.record}))
	require.False(t, called, "another agent needs the installed objects")
	require.Contains(t, reported.details("remove the hub's access from the member")[1],
		"the installed objects stay: ClusterRoleBinding muster-push")
	require.NoError(t, Clean(ctx, f.config, CleanOptions{Unprepare: unprepare}))
	require.True(t, called)
}
