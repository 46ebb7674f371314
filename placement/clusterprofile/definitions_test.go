package clusterprofile_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
)

// TestExport_Definitions checks that without definitions there are no requests but the watches for them. A kind that is
// installed later is exported without a restart, and a kind that is removed causes no more requests.
func TestExport_Definitions(t *testing.T) { testkit.Virtual(t, testExportDefinitions) }

func testExportDefinitions(t *testing.T) {
	h := newHub(t)
	r := h.start()
	h.member("east")
	h.createDecision("web-decision-0", "east")
	h.Holds("the requests for the definitions are sent", func() bool { return r.recorder.count() > 0 })
	r.awaitQuiet(t)
	require.Subset(t, []string{
		"list apiextensions.k8s.io/customresourcedefinitions", "watch apiextensions.k8s.io/customresourcedefinitions",
	}, r.recorder.all())
	require.LessOrEqual(t, r.recorder.count(), 4, "a list and a watch of each")

	h.define(decisions)
	r.awaitQuiet(t)
	require.NotContains(t, r.recorder.all(), "list multicluster.x-k8s.io/placementdecisions",
		"decisions are not exported without profiles")
	h.define(profiles)
	h.requireObject(profiles, "east", complete)
	h.requireObject(decisions, "web-decision-0", hasClusters("east"))

	// The definition exists, but the version is not served.
	r.awaitQuiet(t)
	h.serve(profiles, "false")
	h.Holds("the profiles are not served", func() bool { return h.Client.List(t.Context(), listOf(profiles)) != nil })
	writes := len(r.awaitQuiet(t))
	h.property("east", "1")
	h.createDecision("web-decision-1", "east")
	require.Len(t, r.awaitQuiet(t), writes)
	h.serve(profiles, "true")
	h.requireObject(profiles, "east", hasProperty("1"))
	h.requireObject(decisions, "web-decision-1", hasClusters("east"))

	h.undefine(profiles)
	h.undefine(decisions)
	r.awaitQuiet(t)
	before := r.recorder.count()
	h.property("east", "2")
	h.createDecision("web-decision-2", "east")
	r.awaitQuiet(t)
	require.Equal(t, before, r.recorder.count(), "removed kinds must not be requested")

	h.define(profiles)
	h.define(decisions)
	h.requireObject(profiles, "east", hasProperty("2"))
	for _, name := range []string{"web-decision-0", "web-decision-1", "web-decision-2"} {
		h.requireObject(decisions, name, hasClusters("east"))
	}
}

// serve changes whether the API server serves the version.
func (h *hub) serve(name, served string) {
	h.T.Helper()
	d := definition(name)
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(d), d))
	versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
	require.NoError(h.T, err)
	first := versions[0].(map[string]any)
	first["served"] = served == "true"
	require.NoError(h.T, unstructured.SetNestedSlice(d.Object, versions, "spec", "versions"))
	require.NoError(h.T, h.Client.Update(h.T.Context(), d))
}
