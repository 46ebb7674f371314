package override_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// drawRule returns a random rule of any kind. Many of them fail for some object.
func drawRule(t *rapid.T) v1alpha1.OverrideRule {
	texts := rapid.SampledFrom([]string{`"a"`, `1`, `{"b":["${muster.cluster.name}"]}`,
		`"${muster.cluster.labels['region']:-none}"`, `"${muster.cluster.labels['zone']}"`, `[]`})
	paths := rapid.SampledFrom([]string{"/data/a", "/data/b", "/data/a/b/0", "/data/a/b/-", "/metadata/labels",
		"/metadata/annotations/a", "/x"})
	var rule v1alpha1.OverrideRule
	if rapid.Bool().Draw(t, "some clusters") {
		rule.Clusters = []v1alpha1.ClusterSelector{
			{Names: []string{rapid.SampledFrom([]string{"east", "west"}).Draw(t, "cluster")}}}
	}
	if rapid.Bool().Draw(t, "some objects") {
		rule.Objects = []v1alpha1.ObjectSelector{{Name: rapid.SampledFrom([]string{"o0", "o1", "o2"}).Draw(t, "object")}}
		if rule.Delete = rapid.IntRange(0, 3).Draw(t, "delete") == 0; rule.Delete {
			return rule
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "operations") {
		op := v1alpha1.JSONPatchOperation{Op: rapid.SampledFrom([]v1alpha1.JSONPatchOp{"add", "add", "add", "replace",
			"remove", "move", "copy", "test"}).Draw(t, "op"), Path: paths.Draw(t, "path")}
		switch op.Op {
		case v1alpha1.JSONPatchAdd, v1alpha1.JSONPatchReplace, v1alpha1.JSONPatchTest:
			op.Value = value(texts.Draw(t, "value"))
		case v1alpha1.JSONPatchMove, v1alpha1.JSONPatchCopy:
			op.From = paths.Draw(t, "from")
		}
		if op.Path == "/data/a/b/0" && op.From == "/data/a" || op.Path == "/data/a/b/-" && op.From == "/data/a" {
			op.From = "/data/b"
		}
		rule.JSONPatch = append(rule.JSONPatch, op)
	}
	if len(rule.JSONPatch) == 0 || rapid.Bool().Draw(t, "merges") {
		rule.MergePatch = value(`{"data":{"a":` + texts.Draw(t, "merged") + `,"b":null}}`)
	}
	return rule
}

func TestPlanFor_RandomRules(t *testing.T) {
	clusters := []*scheduler.Cluster{{Name: "east", Labels: map[string]string{"region": "eu", "zone": "1"}},
		{Name: "west"}}
	drawn, succeeded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		overrides := &v1alpha1.Overrides{ExpandManifests: rapid.Bool().Draw(t, "expand")}
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			overrides.Rules = append(overrides.Rules, drawRule(t))
		}
		var objects []bundle.Object
		for i := range 3 {
			o, err := bundle.Parse(
				fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o%d","labels":{}},"data":{"a":{"b":[1]},`+
						`"b":"${muster.cluster.name}"}}`, i))
			require.NoError(t, err)
			objects = append(objects, o)
		}
		objectsBefore, overridesBefore := cmpCopy(objects), overrides.DeepCopy()
		plan, err := override.New(objects, overrides)
		require.NoError(t, err)
		for _, cluster := range clusters {
			drawn++
			result, err := plan.For(cluster)
			fresh, freshErr := override.Apply(objects, overrides, cluster)
			require.Empty(t, cmp.Diff(fresh, result), "earlier calls must not change the result")
			require.Equal(t, freshErr == nil, err == nil)
			if err != nil {
				require.Equal(t, freshErr.Error(), err.Error())
				require.Empty(t, result, "an error must have no result")
				continue
			}
			succeeded++
			require.Len(t, result.Objects, len(objects)-len(result.Deleted))
			ids := map[string]bool{}
			for i := range objects {
				ids[objects[i].String()] = true
			}
			for i := range result.Objects {
				require.True(t, ids[result.Objects[i].String()], "the identity of an object must not change")
				again, err := bundle.Parse(result.Objects[i].JSON)
				require.NoError(t, err)
				require.Equal(t, again, result.Objects[i])
			}
			if len(result.Rules) == 0 && !overrides.ExpandManifests {
				require.Equal(t, objects, result.Objects)
			}
		}
		require.Empty(t, cmp.Diff(objectsBefore, objects), "objects were changed")
		require.Empty(t, cmp.Diff(overridesBefore, overrides), "overrides were changed")
	})
	if drawn < 100 {
		return // -short: too few draws for a share
	}
	require.Greater(t, succeeded*4, drawn, "most draws fail")
}

func cmpCopy(objects []bundle.Object) []bundle.Object {
	out := make([]bundle.Object, len(objects))
	for i, o := range objects {
		out[i] = o
		out[i].JSON = append([]byte(nil), o.JSON...)
	}
	return out
}

// TestPlanFor_ConcurrentCalls checks that a plan can be used concurrently. Run it with the race detector.
func TestPlanFor_ConcurrentCalls(t *testing.T) {
	plan, err := override.New([]bundle.Object{parse(t, web), parse(t, config)},
		overrides(t, `{expandManifests: true, rules: [
		{clusters: [{labelSelector: {matchLabels: {region: eu}}, cel: ["cluster.name == 'east'"]}],
		  objects: [{kind: Deployment}],
		 jsonPatch: [{op: add, path: /spec/new, value: {a: ["${muster.cluster.name}"]}}, {op: add, path: /spec/new/a/-,
		   value: b}], mergePatch: {spec: {more: {b: "${muster.cluster.name}"}}}}]}`))
	require.NoError(t, err)
	want, err := plan.For(east)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				got, err := plan.For(east)
				if err != nil || !cmp.Equal(want, got) {
					t.Error(err, cmp.Diff(want, got))
				}
			}
		})
	}
	all.Wait()
}
