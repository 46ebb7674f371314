package agent_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestAdditions checks additions of other clients to an object: they stay, are reported on the hub, or are removed,
// as the Work requires.
func TestAdditions(t *testing.T) { testkit.Virtual(t, testAdditions) }

func testAdditions(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	spec := func(policy string) string {
		return "{" + manifests(deployment, configMap("a", "{k: v}")) + comma(policy) + "}"
	}
	work := f.work("shop", spec(""))
	f.awaitApplied(work, 1, "True", v1alpha1.ReasonApplied, "")
	f.patch(f.read("ConfigMap", "a"), "data: {theirs: x}")
	strategic := client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "s"}]}}}}`))
	require.NoError(t, f.member.Patch(t.Context(), f.read("Deployment", "web"), strategic, client.FieldOwner("editor")))
	containers := func() int {
		list, _, _ := unstructured.NestedSlice(f.read("Deployment", "web").Object, "spec", "template", "spec", "containers")
		return len(list)
	}
	f.awaitNoWrites()
	f.awaitApplied(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Equal(t, []any{"x", 2}, []any{f.data("a", "theirs"), containers()}, "additions are kept by default")

	f.change(work, spec("apply: {additions: Report}"))
	f.awaitApplied(work, 1, "False", v1alpha1.ReasonDrifted, `.data.theirs is owned by "editor"`)
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonDrifted, `containers[name="sidecar"] is owned by "editor"`)
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonDrifted,
		"Set additions to Remove to remove the fields, or to Keep to accept them.")
	require.Equal(t, v1alpha1.ReasonDrifted, condition(work, v1alpha1.ConditionDegraded).Reason)
	require.Equal(t, []any{"x", 2}, []any{f.data("a", "theirs"), containers()}, "a report changes nothing")

	f.change(work, spec("apply: {additions: Remove}, manifestOptions: [{select: {kind: ConfigMap}, additions: Keep}]"))
	f.awaitApplied(work, 0, "True", v1alpha1.ReasonApplied, "")
	f.awaitApplied(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Equal(t, []any{"x", 1}, []any{f.data("a", "theirs"), containers()},
		"an option takes precedence over the policy")
	f.change(work, spec("apply: {additions: Remove}"))
	f.awaitApplied(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Empty(t, f.data("a", "theirs"))
	f.patch(f.read("ConfigMap", "a"), "data: {again: x}")
	f.Eventually("ConfigMap a does not have again", func() error { return equal("", f.data("a", "again")) })
}

// TestPolicies checks the effect of each mode and policy on an object, and the status on the hub.
func TestPolicies(t *testing.T) {
	const fine = "Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired"
	for _, test := range []struct {
		reason string
		before string // the data of an existing object; empty: none
		policy string // the policy of the Work, whose one manifest has {k: wanted}
		want   string // the status of the Work
		data   string // the data of the object then
		edited string // data that a user sets then
		status string // the status after the edit; empty: want
		after  string // the data after the edit
		kept   bool   // the object stays when the Work is deleted
	}{
		{
			reason: "object is created, an edit is corrected, deletion is with the Work",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied " +
				"Available=True/Ready",
			data: "wanted", edited: "edited", after: "wanted",
		},
		{
			reason: "existing object is not changed by default", before: "found",
			want: "1/1 Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay\n" +
				"ConfigMap NS/NAME: The object exists and was not applied by this Work. Set takeover to IfNoDiff or Always to " +
				"take over the object, or mode to Observe to only report its state.\n" +
				"ConfigMap NS/NAME: Applied=False/InTheWay Available=True/Ready",
			data: "found", edited: "edited", after: "edited", kept: true,
		},
		{
			reason: "takeover IfNoDiff reports a differing object", before: "found",
			policy: "apply: {takeover: IfNoDiff}",
			want: "1/1 Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay\n" +
				"ConfigMap NS/NAME: The object exists, was not applied by this Work, and differs from the manifest. " +
				"Set takeover to Always to take over the object.\n" +
				"ConfigMap NS/NAME: Applied=False/InTheWay Available=True/Ready\n  .data.k wanted \"wanted\" found \"found\"",
			data: "found", edited: "wanted", after: "wanted",
			status: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied " +
				"Available=True/Ready",
		},
		{
			reason: "takeover IfNoDiff takes over an equal object", before: "wanted", policy: "apply: {takeover: IfNoDiff}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "wanted",
		},
		{
			reason: "takeover Always takes over a differing object", before: "found", policy: "apply: {takeover: Always}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "wanted",
		},
		{
			reason: "drift Report keeps an edit", policy: "apply: {drift: Report}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
			status: "1/1 Applied=False/Drifted Available=True/Ready Progressing=False/AsDesired Degraded=True/Drifted\n" +
				"ConfigMap NS/NAME: The object was changed on the member: .data.k is \"edited\", expected \"wanted\". " +
				"Set drift to Correct to revert the changes.\n" +
				"ConfigMap NS/NAME: Applied=False/Drifted Available=True/Ready\n  .data.k wanted \"wanted\" found \"edited\"",
		},
		{
			reason: "drift Ignore keeps an edit until the manifest changes", policy: "apply: {drift: Ignore}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
		},
		{
			reason: "keepConflicts reports an edit as a conflict", policy: "apply: {keepConflicts: true}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
			status: "1/1 Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict\n" +
				"ConfigMap NS/NAME: Other field managers own fields of the object: .data.k is owned by \"editor\". Remove the " +
				"fields from the manifest, add them to ignoredFields, or let the other managers release the fields.\n" +
				"ConfigMap NS/NAME: Applied=False/Conflict Available=True/Ready",
		},
		{
			reason: "mode CreateOnly keeps an edit", policy: "apply: {mode: CreateOnly}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
		},
		{
			reason: "mode CreateOnly keeps an existing object", before: "found", policy: "apply: {mode: CreateOnly}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Exists Available=True/Ready",
			data: "found", edited: "edited", after: "edited", kept: true,
		},
		{
			reason: "mode Observe changes nothing", before: "found",
			policy: "apply: {mode: Observe}, manifestOptions: [{select: {name: NAME}, feedback: [{name: k, jsonPath: " +
				".data.k}]}]",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Observed " +
				"Available=True/Ready\n  k = found (String)",
			data: "found", edited: "edited", after: "edited", kept: true,
			status: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Observed " +
				"Available=True/Ready\n  k = edited (String)",
		},
		{
			reason: "mode Observe reports a missing object", policy: "apply: {mode: Observe}",
			want: "0/1 Applied=False/NotFound Available=False/NotApplied Progressing=False/AsDesired Degraded=True/NotFound\n" +
				"ConfigMap NS/NAME: The object does not exist.\nConfigMap NS/NAME: Applied=False/NotFound " +
				"Available=False/NotApplied",
		},
		{
			reason: "mode ReportDiff keeps differences", before: "found", policy: "apply: {mode: ReportDiff}",
			want: "1/1 Applied=False/Differs Available=True/Ready Progressing=False/AsDesired Degraded=True/Differs\n" +
				"ConfigMap NS/NAME: The object differs from the manifest: .data.k is \"found\", expected \"wanted\".\n" +
				"ConfigMap NS/NAME: Applied=False/Differs Available=True/Ready\n  .data.k wanted \"wanted\" found \"found\"",
			data: "found", edited: "wanted", after: "wanted", kept: true,
			status: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Observed " +
				"Available=True/Ready",
		},
		{
			reason: "ignored field is set once",
			policy: "manifestOptions: [{select: {name: NAME}, ignoredFields: [.data.k]}]",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied " +
				"Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
		},
		{
			reason: "delete action Orphan keeps the object", policy: "delete: {action: Orphan}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", kept: true,
		},
		{
			reason: "delete option Orphan keeps one object",
			policy: "manifestOptions: [{select: {kind: ConfigMap}, delete: Orphan}]",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied " +
				"Available=True/Ready",
			data: "wanted", kept: true,
		},
		{
			reason: "propagation Background deletes the object", policy: "delete: {propagation: Background}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted",
		},
	} {
		name := strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return '-'
			}
			return r
		}, strings.ToLower(test.reason))
		run := func(t *testing.T) {
			f := newMemoryFixture(t)
			f.start()
			named := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
			if test.before != "" {
				f.create(f.member, configMap(name, "{k: "+test.before+"}"))
			}
			work := f.work(name, named("{"+manifests(configMap(name, "{k: wanted}"))+comma(test.policy)+"}"))
			f.awaitStatus(work, named(test.want))
			require.Equal(t, test.data, f.data(name, "k"))
			if test.edited != "" {
				f.patch(f.read("ConfigMap", name), "data: {k: "+test.edited+"}")
				if test.status != "" {
					f.awaitStatus(work, named(test.status))
				}
				f.Eventually("ConfigMap "+name+" has the value of the policy", func() error {
					return equal(test.after, f.data(name, "k"))
				})
				f.awaitStatus(work, named(cmp.Or(test.status, test.want)))
				if test.after == test.edited { // the edit is not reverted later
					<-time.After(time.Second)
					require.Equal(t, test.after, f.data(name, "k"))
				}
			}
			if strings.Contains(test.policy, "drift: Ignore") {
				f.change(work, named("{"+manifests(configMap(name, "{k: changed}"))+comma(test.policy)+"}"))
				f.Eventually("ConfigMap "+name+" is changed", func() error { return equal("changed", f.data(name, "k")) })
			}
			before := f.read("ConfigMap", name)
			f.delete(work)
			f.gone(work)
			require.Nil(t, f.applied(work))
			after := f.read("ConfigMap", name)
			require.Equal(t, test.kept, after != nil)
			if after != nil {
				require.Equal(t, before.GetUID(), after.GetUID())
				require.Empty(t, after.GetOwnerReferences())
				require.NotContains(t, after.GetLabels(), v1alpha1.AppliedLabel)
			}
			require.NoError(t, client.IgnoreNotFound(f.member.Delete(context.Background(), f.manifest(configMap(name, "{}")))))
		}
		t.Run(test.reason, func(t *testing.T) { testkit.Virtual(t, run) })
	}
}
