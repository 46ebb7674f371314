package clusterprofile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestPermissions checks that the role in the folder rbac contains all permissions that the export uses, and no others.
func TestPermissions(t *testing.T) {
	h := newHubOnPlane(t, profiles)
	_, team := h.withSets(t)
	role := mustertest.ClusterRole(t, "rbac/role.yaml")
	role.Name = h.Namespace
	require.NoError(t, mustertest.Grant(t.Context(), h.Client, h.Namespace, role))
	user := plane.ForTest(t).User(h.Namespace)
	r := h.start(func(config *rest.Config, _ *manager.Options) {
		config.TLSClientConfig, config.BearerToken = user.TLSClientConfig, user.BearerToken
	})
	h.define(decisions)
	east := h.member("east", inEnvironment("prod"))
	decision := h.createDecision("web-decision-0", "east")
	h.requireObject(profiles, "east", complete)
	h.requireObject(decisions, "web-decision-0", hasClusters("east"))
	h.profilesIn(team, "prod", "east")
	h.relabel("east", "dev")
	h.profilesIn(team, "prod") // The export has read the live member: that of a deleted one can be collected before.
	h.relabel("east", "prod")
	h.profilesIn(team, "prod", "east")
	h.labelNamespace(team, "")
	h.profilesIn(team, "")
	r.awaitQuiet(t)
	h.clock.Step(time.Hour)
	h.patch(h.get(profiles, "east"), `{"metadata":{"labels":{"x-k8s.io/cluster-manager":null}}}`)
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return u.GetLabels()["x-k8s.io/cluster-manager"] != ""
	})
	decision.Decisions = nil
	require.NoError(t, h.Client.Update(t.Context(), decision))
	h.requireObject(decisions, "web-decision-0", hasClusters())
	require.NoError(t, h.Client.Create(t.Context(), object(profiles, h.options.ProfileNamespace, "west",
		map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "other"}}})))
	h.member("west")
	require.NoError(t, h.Client.Delete(t.Context(), east))
	h.requireGone(profiles, "east")
	h.Holds("events are created", func() bool {
		return slices.Contains(r.recorder.all(), "create events.k8s.io/events")
	})

	var granted []string
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			granted = append(granted, verb+" "+rule.APIGroups[0]+"/"+rule.Resources[0])
		}
	}
	used := append(r.recorder.all(), "patch events.k8s.io/events") // for an Event that is repeated minutes later
	slices.Sort(granted)
	slices.Sort(used)
	used = slices.Compact(used)
	// A watch may include the list, if the API server supports streamed lists.
	watchLists := func(s string) bool { return len(s) > 5 && s[:5] == "list " }
	require.Equal(t, slices.DeleteFunc(granted, watchLists), slices.DeleteFunc(used, watchLists))

	c := mustertest.Client(t, user, scheme)
	definitions := &unstructured.UnstructuredList{}
	definitions.SetGroupVersionKind(definition(profiles).GroupVersionKind())
	for request, err := range map[string]error{
		"list all definitions": c.List(t.Context(), definitions),
		"change members": c.Patch(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}},
			client.RawPatch("application/merge-patch+json", []byte("{}"))),
		"delete decisions": c.Delete(t.Context(), object(decisions, h.Namespace, "web-decision-0", map[string]any{})),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", request, err)
	}
}
