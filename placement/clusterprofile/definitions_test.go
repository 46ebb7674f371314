package clusterprofile_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDefinitions checks that without definitions there are no requests but the watches for them. A kind that is
// installed later is exported without a restart, and a kind that is removed causes no more requests.
func TestDefinitions(t *testing.T) {
	h := newHub(t)
	r := h.start()
	h.member("east")
	h.slice("web-decision-0", "east")
	h.eventually("it waits", func() bool { return r.wire.count() > 0 })
	r.quiet(t)
	require.Subset(t, []string{
		"list apiextensions.k8s.io/customresourcedefinitions", "watch apiextensions.k8s.io/customresourcedefinitions",
	}, r.wire.all())
	require.LessOrEqual(t, r.wire.count(), 4, "a list and a watch of each")

	h.define(decisions)
	r.quiet(t)
	require.NotContains(t, r.wire.all(), "list multicluster.x-k8s.io/placementdecisions",
		"there is nothing that decisions could refer to")
	h.define(profiles)
	h.there(profiles, "east", complete)
	h.there(decisions, "web-decision-0", on("east"))

	// Not served any more, though it is still there.
	r.quiet(t)
	h.serve(profiles, "false")
	h.eventually("it ends", func() bool { return h.client.List(t.Context(), listOf(profiles)) != nil })
	before := len(r.quiet(t))
	h.property("east", "1")
	h.slice("web-decision-1", "east")
	require.Len(t, r.quiet(t), before)
	h.serve(profiles, "true")
	h.there(profiles, "east", has("1"))
	h.there(decisions, "web-decision-1", on("east"))

	h.undefine(profiles)
	h.undefine(decisions)
	r.quiet(t)
	asked := r.wire.count()
	h.property("east", "2")
	h.slice("web-decision-2", "east")
	r.quiet(t)
	require.Equal(t, asked, r.wire.count(), "nothing is asked for that is gone")

	h.define(profiles)
	h.define(decisions)
	h.there(profiles, "east", has("2"))
	for _, name := range []string{"web-decision-0", "web-decision-1", "web-decision-2"} {
		h.there(decisions, name, on("east"))
	}
}

// serve changes whether the API server serves the version.
func (h *hub) serve(name, served string) {
	h.t.Helper()
	d := definition(name)
	require.NoError(h.t, h.client.Get(h.t.Context(), client.ObjectKeyFromObject(d), d))
	versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
	require.NoError(h.t, err)
	first := versions[0].(map[string]any)
	first["served"] = served == "true"
	require.NoError(h.t, unstructured.SetNestedSlice(d.Object, versions, "spec", "versions"))
	require.NoError(h.t, h.client.Update(h.t.Context(), d))
}
