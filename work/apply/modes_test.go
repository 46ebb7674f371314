package apply_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestModes(t *testing.T) {
	type want struct {
		action apply.Action
		reason string
		value  string // of data.k afterwards; "-": the object does not exist
		owned  bool   // the inventory has the object with its UID
	}
	const wanted, found = "wanted", "found"
	for name, tc := range map[string]struct {
		reason                         string
		mode                           v1alpha1.ApplyMode
		absent, foreign, ours, drifted want
	}{
		"apply": {
			reason: "an object of another client is not changed without takeover",
			mode:   v1alpha1.ServerSideApply,
			absent: want{apply.Created, v1alpha1.ReasonApplied, wanted, true}, foreign: want{apply.Conflict,
				v1alpha1.ReasonInTheWay, found, false},
			ours: want{apply.Unchanged, v1alpha1.ReasonApplied, wanted, true}, drifted: want{apply.Configured,
				v1alpha1.ReasonApplied, wanted, true},
		},
		"create only": {
			reason: "the object is not changed after its creation",
			mode:   v1alpha1.CreateOnly,
			absent: want{apply.Created, v1alpha1.ReasonApplied, wanted, true}, foreign: want{apply.Skipped,
				v1alpha1.ReasonExists, found, false},
			ours: want{apply.Unchanged, v1alpha1.ReasonApplied, wanted, true}, drifted: want{apply.Unchanged,
				v1alpha1.ReasonApplied, found, true},
		},
		"observe": {
			reason: "the object is never written",
			mode:   v1alpha1.Observe,
			absent: want{apply.Observed, v1alpha1.ReasonNotFound, "-", false}, foreign: want{apply.Observed,
				v1alpha1.ReasonObserved, found, false},
			ours: want{apply.Observed, v1alpha1.ReasonObserved, wanted, true}, drifted: want{apply.Observed,
				v1alpha1.ReasonObserved, found, true},
		},
		"report": {
			reason: "differences are reported regardless of the owner",
			mode:   v1alpha1.ReportDiff,
			absent: want{apply.Observed, v1alpha1.ReasonNotFound, "-", false}, foreign: want{apply.Observed,
				v1alpha1.ReasonDiffers, found, false},
			ours: want{apply.Observed, v1alpha1.ReasonObserved, wanted, true}, drifted: want{apply.Observed,
				v1alpha1.ReasonDiffers, found, true},
		},
	} {
		run := func(t *testing.T) {
			f := newMemoryFixture(t)
			for state, want := range map[string]want{"absent": tc.absent, "foreign": tc.foreign, "ours": tc.ours,
				"drifted": tc.drifted} {
				f.inventory = nil
				object := f.configMap(string(tc.mode[0])+"x"+state, "{k: "+wanted+"}")
				object.Manifest.SetName(lower(object.Manifest.GetName()))
				switch state {
				case "foreign":
					require.NoError(t, f.Client.Create(t.Context(), sameNamed(object)))
				case "ours", "drifted":
					f.one(object)
					if state == "drifted" {
						f.patch(object.Manifest, "{data: {k: found}}")
					}
				}
				object.Mode = tc.mode
				change := f.one(object)
				got := want
				got.action, got.reason, got.value, got.owned = change.Action, change.Reason, "-", false
				if !f.isGone(object.Manifest) {
					got.value = f.get(object.Manifest).Object["data"].(map[string]any)["k"].(string)
				}
				for _, r := range f.inventory {
					got.owned = got.owned || r.Name == object.Manifest.GetName() && r.UID != ""
				}
				require.Equal(t, want, got, "%s: %s (%s, %v)", state, tc.reason, change.Message, change.Err)
			}
		}
		t.Run(name, func(t *testing.T) { testkit.Virtual(t, run) })
	}
}

func TestTakeover(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct {
		reason   string
		takeover v1alpha1.Takeover
		found    string
		want     apply.Action
		diffs    int
	}{
		"never": {"an equal object is not taken over", v1alpha1.TakeoverNever, "{k: v}", apply.Conflict, 0},
		"same":  {"an equal object is taken over", v1alpha1.TakeoverIfNoDiff, "{k: v}", apply.Configured, 0},
		"same-and-more": {"only the fields of the manifest are compared", v1alpha1.TakeoverIfNoDiff, "{k: v, l: w}",
			apply.Configured, 0},
		"differs":        {"the differences are reported", v1alpha1.TakeoverIfNoDiff, "{k: other}", apply.Conflict, 1},
		"always-same":    {"the marks are added", v1alpha1.TakeoverAlways, "{k: v}", apply.Configured, 0},
		"always-differs": {"the fields are taken over", v1alpha1.TakeoverAlways, "{k: other}", apply.Configured, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f.inventory = nil
			object := f.configMap(name, "{k: v}", takeover(tc.takeover))
			createByKubectl(t, f, f.configMap(name, tc.found))
			change := f.one(object)
			require.Equal(t, tc.want, change.Action, "%s: %s %v", tc.reason, change.Message, change.Err)
			require.Len(t, change.Diffs, tc.diffs)
			live := f.get(object.Manifest)
			if tc.want == apply.Conflict {
				require.Equal(t, v1alpha1.ReasonInTheWay, change.Reason)
				require.NotContains(t, live.GetAnnotations(), f.owner.Mark())
				return
			}
			require.Equal(t, "v", live.Object["data"].(map[string]any)["k"])
			require.Contains(t, live.GetAnnotations(), f.owner.Mark())
			require.Equal(t, apply.Unchanged, f.one(object).Action, "the object is not written again")
		})
	}
}

// createByKubectl creates an object as kubectl apply does.
func createByKubectl(t *testing.T, f *fixture, object apply.Object) {
	t.Helper()
	u := object.Manifest.DeepCopy()
	data, err := json.Marshal(u.Object)
	require.NoError(t, err)
	u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(data)})
	require.NoError(t, f.Client.Create(t.Context(), u, client.FieldOwner("kubectl-client-side-apply")))
}

func TestDrift(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct{ reason, edit string }{
		"value":   {"an edited value is reverted", "{data: {k: edited}}"},
		"removal": {"a removed value is restored", "{data: {k: null}}"},
		"label": {"watches do not observe an object without the label",
			"{metadata: {labels: {work.muster.dev/applied: null}}}"},
		"relabel": {"watches do not observe an object with another value of the label",
			`{metadata: {labels: {work.muster.dev/applied: "no"}}}`},
		"annotation": {"without the hash the applied manifest is unknown after a restart", "{metadata: {annotations: null}}"},
		"replaced": {"kubectl replace removes all marks and values at once",
			"{metadata: {annotations: null, labels: null}, data: {k: x, l: z}}"},
		"fields": {"an object without managed fields is applied again", "{metadata: {managedFields: [{}]}}"},
	} {
		t.Run(name, func(t *testing.T) {
			f.inventory = nil
			object := f.configMap("correct-"+name, "{k: v, l: w}")
			require.Equal(t, apply.Created, f.one(object).Action)
			before := state(t, f.get(object.Manifest))
			f.patch(object.Manifest, tc.edit)
			change := f.one(object)
			require.Equal(t, apply.Configured, change.Action, "%s: %s %v", tc.reason, change.Message, change.Err)
			require.True(t, change.Drifted)
			require.Equal(t, before, state(t, f.get(object.Manifest)), tc.reason)
			require.Equal(t, apply.Unchanged, f.one(object).Action)

			f.inventory = nil
			report := f.configMap("report-"+name, "{k: v, l: w}", drift(v1alpha1.DriftReport))
			require.Equal(t, apply.Created, f.one(report).Action)
			f.patch(report.Manifest, tc.edit)
			edited := f.get(report.Manifest)
			change = f.one(report)
			require.Equal(t, edited, f.get(report.Manifest), "a report changes nothing")
			if name == "fields" {
				require.Equal(t, apply.Unchanged, change.Action, "all values are equal")
				return
			}
			require.Equal(t, apply.Skipped, change.Action, "%s %v", change.Message, change.Err)
			require.Equal(t, v1alpha1.ReasonDrifted, change.Reason)
			require.True(t, change.Drifted)
			require.NotEmpty(t, change.Diffs)
			f.counted.take()
			require.Equal(t, change.Diffs, f.one(report).Diffs)
			reads, writes := f.counted.take()
			require.Equal(t, []int{1, 0}, []int{reads, writes}, "each version is compared once")
		})
	}
}

func TestDrift_Deletion(t *testing.T) { testkit.Virtual(t, testDriftDeletion) }

func testDriftDeletion(t *testing.T) {
	f := newMemoryFixture(t)
	for policy, want := range map[v1alpha1.DriftPolicy]apply.Action{v1alpha1.DriftCorrect: apply.Created,
		v1alpha1.DriftReport: apply.Skipped} {
		object := f.configMap("deleted-"+lower(string(policy)), "{k: v}", drift(policy))
		f.inventory = nil
		f.one(object)
		require.NoError(t, f.Client.Delete(t.Context(), object.Manifest.DeepCopy()))
		change := f.one(object)
		require.Equal(t, want, change.Action)
		require.True(t, change.Drifted)
	}
}

func TestDriftReport_ChangedManifest(t *testing.T) {
	testkit.Virtual(t, testDriftReportChangedManifest)
}

func testDriftReportChangedManifest(t *testing.T) {
	f := newMemoryFixture(t)
	f.one(f.configMap("a", "{k: v, l: w}", drift(v1alpha1.DriftReport)))
	changed := f.configMap("a", "{k: v, l: x}", drift(v1alpha1.DriftReport))
	require.Equal(t, apply.Configured, f.one(changed).Action, "a change of the manifest is applied")
	f.patch(changed.Manifest, "{data: {k: edited}}")
	change := f.one(f.configMap("a", "{k: v, l: z}", drift(v1alpha1.DriftReport)))
	require.Equal(t, apply.Skipped, change.Action, "the change of an edited field is not applied")
	require.Equal(t, []apply.FieldConflict{{Field: ".data.k", Manager: "editor"}}, change.Conflicts)
}

func TestKeepConflicts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.configMap("a", "{k: v}", keepConflicts)
	f.one(object)
	f.patch(object.Manifest, "{data: {k: edited}}")
	change := f.one(object)
	require.Equal(t, apply.Conflict, change.Action)
	require.Contains(t, change.Message, `.data.k is owned by "editor"`)
	require.Equal(t, "edited", f.get(object.Manifest).Object["data"].(map[string]any)["k"])
}

func TestApply_FieldRemovedFromManifest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.one(f.configMap("a", "{k: v, l: w}"))
	object := f.configMap("a", "{k: v}")
	require.Equal(t, apply.Configured, f.one(object).Action)
	require.Equal(t, map[string]any{"k": "v"}, f.get(object.Manifest).Object["data"])
}

func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	web := func(replicas, image string) apply.Object {
		return f.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}, spec: {replicas: `+
			replicas+`, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: `+image+`, args: [x, z]}]}}}}`,
			ignored(t, ".spec.replicas", `.spec.template.spec.containers[name="web"].args[0]`))
	}
	spec := func() (int64, []any) {
		live := f.get(web("1", "x").Manifest)
		spec := live.Object["spec"].(map[string]any)
		container := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		return spec["replicas"].(int64), container["args"].([]any)
	}
	require.Equal(t, apply.Created, f.one(web("2", "x:1")).Action)
	change := f.one(web("3", "x:2"))
	require.Equal(t, apply.Configured, change.Action, "%s %v", change.Message, change.Err)
	replicas, args := spec()
	require.EqualValues(t, 2, replicas, "an ignored field without another manager keeps the created value")
	require.Equal(t, []any{"x", "z"}, args, "an ignored item of an atomic list keeps its position")
	require.Equal(t, apply.Unchanged, f.one(web("3", "x:2")).Action)

	scale := manifest(t, "{apiVersion: autoscaling/v1, kind: Scale, spec: {replicas: 5}}")
	require.NoError(t, f.Client.SubResource("scale").Update(t.Context(), web("3", "x:2").Manifest.DeepCopy(),
		client.WithSubResourceBody(scale)))
	require.Equal(t, apply.Unchanged, f.one(web("3", "x:2")).Action, "the value of another manager is no drift")
	require.Equal(t, apply.Configured, f.one(web("4", "x:3")).Action)
	replicas, _ = spec()
	require.EqualValues(t, 5, replicas, "the value of another manager is kept")

	dropped := f.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS},
    spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: other, image: x}]}}}}`,
		ignored(t, `.spec.template.spec.containers[name="web"].image`))
	change = f.one(dropped)
	require.Equal(t, apply.Configured, change.Action, "a removed container is removed with its ignored fields: %s",
		change.Message)
}

func TestModes_ObserveReleasesTheObject(t *testing.T) {
	testkit.Virtual(t, testModesObserveReleasesTheObject)
}

func testModesObserveReleasesTheObject(t *testing.T) {
	f := newMemoryFixture(t)
	object := f.configMap("a", "{k: v}")
	f.one(object)
	object.Mode = v1alpha1.Observe
	f.one(object)
	f.inventory = apply.Stale(f.inventory, []apply.Object{object})
	f.prune(v1alpha1.DeletePolicy{})
	require.NotContains(t, f.get(object.Manifest).GetAnnotations(), f.owner.Mark(),
		"an observed object has no mark of the owner")
}

func TestModes_ReportDiffOfOwnObject(t *testing.T) {
	testkit.Virtual(t, testModesReportDiffOfOwnObject)
}

func testModesReportDiffOfOwnObject(t *testing.T) {
	f := newMemoryFixture(t)
	f.one(f.configMap("a", "{k: v}"))
	change := f.one(f.configMap("a", "{k: other}", func(o *apply.Object) { o.Mode = v1alpha1.ReportDiff }))
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"other"`, Found: `"v"`}}, change.Diffs,
		"the marks of the owner are no differences")
}
