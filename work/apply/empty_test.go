package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/apply"
)

// TestEmptyLists checks that empty lists and maps in a manifest are not drift, also after a restart, and that
// additions of other clients stay: see [v1alpha1.AdditionsRemove]. TestAwkward checks them without other clients.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	objects := f.objects(awkward(t)["empty.yaml"])
	t.Cleanup(func() {
		_ = f.Client.Delete(noContext{t}.Context(), objects[10].Manifest.DeepCopy())
	})
	f.requireNoMoreWrites(objects)
	web := objects[0]
	f.patch(web.Manifest, "{spec: {paused: true, replicas: 1}}")
	require.Equal(t, apply.Configured, f.one(web).Action, "other fields are healed")
	f.jsonPatch(web.Manifest, `[{op: add, path: /spec/template/spec/containers/0/env, value: [{name: A, value: x}]},
  {op: add, path: /spec/template/spec/volumes, value: [{name: d, emptyDir: {}}]}]`)
	f.requireNoMoreWrites(objects)
	require.Contains(t, string(mustMarshal(t, f.get(web.Manifest).Object)), `"env":[{"name":"A","value":"x"}]`)

	role := objects[5]
	f.jsonPatch(role.Manifest, `[{op: add, path: /rules, value: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]`)
	require.Equal(t, apply.Configured, f.one(role).Action, "an atomic list belongs to one manager, empty or not")
	require.Empty(t, f.get(role.Manifest).Object["rules"])
}
