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

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestAdditions checks additions of other clients to an object: they stay, are reported on the hub, or are removed,
// as the Work requires.
func TestAdditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	spec := func(policy string) string {
		return "{" + manifests(deployment, configMap("a", "{k: v}")) + comma(policy) + "}"
	}
	work := w.work("shop", spec(""))
	w.says(work, 1, "True", v1alpha1.ReasonApplied, "")
	w.patch(w.read("ConfigMap", "a"), "data: {theirs: x}")
	strategic := client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "s"}]}}}}`))
	require.NoError(t, w.member.Patch(t.Context(), w.read("Deployment", "web"), strategic, client.FieldOwner("editor")))
	containers := func() int {
		list, _, _ := unstructured.NestedSlice(w.read("Deployment", "web").Object, "spec", "template", "spec", "containers")
		return len(list)
	}
	w.calm()
	w.says(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Equal(t, []any{"x", 2}, []any{w.data("a", "theirs"), containers()}, "additions are kept by default")

	w.change(work, spec("apply: {additions: Report}"))
	w.says(work, 1, "False", v1alpha1.ReasonDrifted, `.data.theirs is owned by "editor"`)
	w.says(work, 0, "False", v1alpha1.ReasonDrifted, `containers[name="sidecar"] is owned by "editor"`)
	w.says(work, 0, "False", v1alpha1.ReasonDrifted,
		"Set additions to Remove to remove the fields, or to Keep to accept them.")
	require.Equal(t, v1alpha1.ReasonDrifted, condition(work, v1alpha1.ConditionDegraded).Reason)
	require.Equal(t, []any{"x", 2}, []any{w.data("a", "theirs"), containers()}, "a report changes nothing")

	w.change(work, spec("apply: {additions: Remove}, manifestOptions: [{select: {kind: ConfigMap}, additions: Keep}]"))
	w.says(work, 0, "True", v1alpha1.ReasonApplied, "")
	w.says(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Equal(t, []any{"x", 1}, []any{w.data("a", "theirs"), containers()}, "an option comes before the policy")
	w.change(work, spec("apply: {additions: Remove}"))
	w.says(work, 1, "True", v1alpha1.ReasonApplied, "")
	require.Empty(t, w.data("a", "theirs"))
	w.patch(w.read("ConfigMap", "a"), "data: {again: x}")
	w.eventually(func() error { return equal("", w.data("a", "again")) })
}

// TestPolicies checks the effect of each mode and policy on an object, and the status on the hub.
func TestPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const fine = "Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired"
	for _, test := range []struct {
		reason string
		before string // the data of the object as it is there before
		policy string // of the Work, whose one manifest wants {k: wanted}
		want   string // its status
		data   string // of the object then
		edited string // data that a user sets then
		status string // after that; the same if empty
		after  string // the data then
		kept   bool   // the object stays when the Work is deleted
	}{
		{
			reason: "what is missing is created, an edit is undone, and all goes with the Work",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied " +
				"Available=True/Ready",
			data: "wanted", edited: "edited", after: "wanted",
		},
		{
			reason: "an object of others is left alone", before: "found",
			want: "1/1 Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay\n" +
				"ConfigMap NS/NAME: The object exists and was not applied by this Work. Set takeover to IfNoDiff or Always to " +
				"take over the object, or mode to Observe to only report its state.\n" +
				"ConfigMap NS/NAME: Applied=False/InTheWay Available=True/Ready",
			data: "found", edited: "edited", after: "edited", kept: true,
		},
		{
			reason: "one that differs is not taken over, and the difference is told", before: "found",
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
			reason: "one that does not differ is", before: "wanted", policy: "apply: {takeover: IfNoDiff}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "wanted",
		},
		{
			reason: "whatever it is, it is taken over", before: "found", policy: "apply: {takeover: Always}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "wanted",
		},
		{
			reason: "an edit is reported, and left", policy: "apply: {drift: Report}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
			status: "1/1 Applied=False/Drifted Available=True/Ready Progressing=False/AsDesired Degraded=True/Drifted\n" +
				"ConfigMap NS/NAME: The object was changed on the member: .data.k is \"edited\", expected \"wanted\". " +
				"Set drift to Correct to revert the changes.\n" +
				"ConfigMap NS/NAME: Applied=False/Drifted Available=True/Ready\n  .data.k wanted \"wanted\" found \"edited\"",
		},
		{
			reason: "an edit stays until the manifest changes", policy: "apply: {drift: Ignore}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
		},
		{
			reason: "an edit is a conflict for who keeps them", policy: "apply: {keepConflicts: true}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
			status: "1/1 Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict\n" +
				"ConfigMap NS/NAME: Other field managers own fields of the object: .data.k is owned by \"editor\". Remove the " +
				"fields from the manifest, add them to ignoredFields, or let the other managers release the fields.\n" +
				"ConfigMap NS/NAME: Applied=False/Conflict Available=True/Ready",
		},
		{
			reason: "what was created may be changed by all", policy: "apply: {mode: CreateOnly}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
		},
		{
			reason: "what was there is not what this Work created", before: "found", policy: "apply: {mode: CreateOnly}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Exists Available=True/Ready",
			data: "found", edited: "edited", after: "edited", kept: true,
		},
		{
			reason: "who only looks changes nothing", before: "found",
			policy: "apply: {mode: Observe}, manifestOptions: [{select: {name: NAME}, feedback: [{name: k, jsonPath: " +
				".data.k}]}]",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Observed " +
				"Available=True/Ready\n  k = found (String)",
			data: "found", edited: "edited", after: "edited", kept: true,
			status: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Observed " +
				"Available=True/Ready\n  k = edited (String)",
		},
		{
			reason: "what is not there cannot be looked at", policy: "apply: {mode: Observe}",
			want: "0/1 Applied=False/NotFound Available=False/NotApplied Progressing=False/AsDesired Degraded=True/NotFound\n" +
				"ConfigMap NS/NAME: The object does not exist.\nConfigMap NS/NAME: Applied=False/NotFound " +
				"Available=False/NotApplied",
		},
		{
			reason: "differences are told, and stay", before: "found", policy: "apply: {mode: ReportDiff}",
			want: "1/1 Applied=False/Differs Available=True/Ready Progressing=False/AsDesired Degraded=True/Differs\n" +
				"ConfigMap NS/NAME: The object differs from the manifest: .data.k is \"found\", expected \"wanted\".\n" +
				"ConfigMap NS/NAME: Applied=False/Differs Available=True/Ready\n  .data.k wanted \"wanted\" found \"found\"",
			data: "found", edited: "wanted", after: "wanted", kept: true,
			status: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Observed " +
				"Available=True/Ready",
		},
		{
			reason: "fields that are left to others are set once",
			policy: "manifestOptions: [{select: {name: NAME}, ignoredFields: [.data.k]}]",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied " +
				"Available=True/Ready",
			data: "wanted", edited: "edited", after: "edited",
		},
		{
			reason: "objects may outlive the Work", policy: "delete: {action: Orphan}",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", kept: true,
		},
		{
			reason: "and some of them, by an option", policy: "manifestOptions: [{select: {kind: ConfigMap}, delete: Orphan}]",
			want: "1/1 " + fine + "\n1 object applied and ready.\nConfigMap NS/NAME: Applied=True/Applied Available=True/Ready",
			data: "wanted", kept: true,
		},
		{
			reason: "dependents may go later", policy: "delete: {propagation: Background}",
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
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			w := *w
			w.t = t
			named := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
			if test.before != "" {
				w.create(w.member, configMap(name, "{k: "+test.before+"}"))
			}
			work := w.work(name, named("{"+manifests(configMap(name, "{k: wanted}"))+comma(test.policy)+"}"))
			w.shows(work, named(test.want))
			require.Equal(t, test.data, w.data(name, "k"))
			if test.edited != "" {
				w.patch(w.read("ConfigMap", name), "data: {k: "+test.edited+"}")
				if test.status != "" {
					w.shows(work, named(test.status))
				}
				w.eventually(func() error { return equal(test.after, w.data(name, "k")) })
				w.shows(work, named(cmp.Or(test.status, test.want)))
				if test.after == test.edited { // and it stays so
					<-time.After(time.Second)
					require.Equal(t, test.after, w.data(name, "k"))
				}
			}
			if strings.Contains(test.policy, "drift: Ignore") {
				w.change(work, named("{"+manifests(configMap(name, "{k: changed}"))+comma(test.policy)+"}"))
				w.eventually(func() error { return equal("changed", w.data(name, "k")) })
			}
			before := w.read("ConfigMap", name)
			w.delete(work)
			w.gone(work)
			require.Nil(t, w.applied(work))
			after := w.read("ConfigMap", name)
			require.Equal(t, test.kept, after != nil)
			if after != nil {
				require.Equal(t, before.GetUID(), after.GetUID())
				require.Empty(t, after.GetOwnerReferences())
				require.NotContains(t, after.GetLabels(), v1alpha1.AppliedLabel)
			}
			require.NoError(t, client.IgnoreNotFound(w.member.Delete(context.Background(), w.manifest(configMap(name, "{}")))))
		})
	}
}
