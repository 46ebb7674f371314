package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestDiffs(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range 30 {
		many[fmt.Sprintf("k%02d", i)] = "v"
	}
	manyText, err := json.Marshal(many)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		reason, kind, wanted, found string
		want                        []v1alpha1.FieldDiff
		count                       int
	}{
		"same": {reason: "fields of the API server are no differences",
			wanted: "{metadata: {uid: a}, status: {x: 1}, a: 1}", found: "{metadata: {uid: b, generation: 2}, a: 1}"},
		"value": {reason: "both values are shown", wanted: "{a: 1}", found: "{a: 2}",
			want: []v1alpha1.FieldDiff{{Path: ".a", Wanted: "1", Found: "2"}}},
		"missing": {reason: "a missing value is empty", wanted: "{a: 1}", found: "{b: 2}",
			want: []v1alpha1.FieldDiff{{Path: ".a", Wanted: "1"}, {Path: ".b", Found: "2"}}},
		"items": {reason: "items are identified by their names", wanted: "{a: [{name: x, v: 1}, {name: z, v: 1}]}",
			found: "{a: [{name: z, v: 1}, {name: x, v: 2}]}", want: []v1alpha1.FieldDiff{{Path: `.a[name="x"].v`, Wanted: "1",
				Found: "2"}}},
		"order": {reason: "a different order is a difference of the list", wanted: "{a: [{name: x}, {name: z}]}",
			found: "{a: [{name: z}, {name: x}]}", want: []v1alpha1.FieldDiff{{Path: ".a", Wanted: `[{"name":"x"},{"name":"z"}]`,
				Found: `[{"name":"z"},{"name":"x"}]`}}},
		"unwanted item": {reason: "an item that the manifest does not have", wanted: "{a: []}", found: "{a: [{name: x}]}",
			want: []v1alpha1.FieldDiff{{Path: `.a[name="x"]`, Found: `{"name":"x"}`}}},
		"secret": {reason: "values of a Secret are redacted", kind: "Secret",
			wanted: "{data: {a: b}, metadata: {labels: {l: m}, annotations: {note: o}}, type: x}",
			found:  "{data: {a: c}, type: z}", want: []v1alpha1.FieldDiff{{Path: ".data.a", Wanted: redacted, Found: redacted},
				{Path: ".metadata", Wanted: redacted}, {Path: ".type", Wanted: `"x"`, Found: `"z"`}}},
		"annotation": {reason: "annotations of a Secret are redacted: kubectl stores a copy in one", kind: "Secret",
			wanted: "{metadata: {labels: {l: m}, annotations: {note: o}}}",
			found:  "{metadata: {labels: {l: x}, annotations: {}}}",
			want: []v1alpha1.FieldDiff{{Path: ".metadata.annotations.note", Wanted: redacted}, {Path: ".metadata.labels.l",
				Wanted: `"m"`, Found: `"x"`}}},
		"many": {reason: "the number of differences has a limit", wanted: string(manyText), found: "{}", count: MaxDiffs},
		"long": {reason: "a long value is cut at a character", wanted: "{a: " + strings.Repeat("ü", 200) + "}", found: "{}",
			want: []v1alpha1.FieldDiff{{Path: ".a", Wanted: `"` + strings.Repeat("ü", 62) + "…"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted, found := &unstructured.Unstructured{Object: object(t, tc.wanted)},
				&unstructured.Unstructured{Object: object(t, tc.found)}
			wanted.SetAPIVersion("v1")
			found.SetAPIVersion("v1")
			if tc.kind != "" {
				wanted.SetKind(tc.kind)
				found.SetKind(tc.kind)
			}
			got := diffs(wanted, found)
			if tc.count > 0 {
				require.Len(t, got, tc.count, tc.reason)
				require.Contains(t, summary(got), "and 17 more")
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConflictsOf(t *testing.T) {
	t.Parallel()
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: message}
	}
	err := apierrors.NewApplyConflict([]metav1.StatusCause{
		cause(".spec.replicas", `conflict with "kubectl" using apps/v1`), cause(".data", `conflict with "a b"`),
		cause(".x", "odd"),
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "other"},
	}, "Apply failed")
	want := []FieldConflict{{".spec.replicas", "kubectl"}, {".data", "a b"}, {".x", "odd"}}
	require.Equal(t, want, conflictsOf(fmt.Errorf("wrapped: %w", err)))
	require.False(t, changedConcurrently(err), "a retry does not resolve a conflict about fields")
	gr := schema.GroupResource{Resource: "x"}
	require.Nil(t, conflictsOf(apierrors.NewConflict(gr, "a", errors.New("modified"))))
	require.True(t, changedConcurrently(apierrors.NewConflict(gr, "a", errors.New("modified"))))
	require.Nil(t, conflictsOf(nil))
}

func TestExplain(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Resource: "secrets"}
	terminating := apierrors.NewForbidden(gr, "a", errors.New("x"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	internal := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: message}}
	}
	secret := v1alpha1.ResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "a"}
	for name, tc := range map[string]struct {
		reason        string
		err           error
		want, message string
	}{
		"kind": {"the member does not serve the kind", &meta.NoKindMatchError{}, v1alpha1.ReasonUnknownKind,
			"kind Secret (v1)"},
		"unserved": {"the path is no longer served", apierrors.NewGenericServerResponse(404, "get", gr, "a",
			"404 page not found", 0, true), v1alpha1.ReasonUnknownKind, "does not serve kind"},
		"namespace": {"the namespace may be missing", apierrors.NewNotFound(gr, "a"), v1alpha1.ReasonFailed,
			"Check that namespace shop exists"},
		"terminating": {"the namespace is being deleted", terminating, v1alpha1.ReasonTerminating,
			"Namespace shop is being deleted"},
		"forbidden": {"permissions are missing", apierrors.NewForbidden(gr, "a", errors.New("no")), v1alpha1.ReasonForbidden,
			"The member denied the request"},
		"schema": {"the API server reports an internal error, which quotes the value",
			internal("failed to create typed patch object (a/b; /v1, Kind=Secret): .data.k: expected string, got hidden"),
			v1alpha1.ReasonRejected, ".data.k"},
		"internal": {"an internal error is retried", internal("etcd is away"), v1alpha1.ReasonFailed, "etcd"},
		"invalid": {"a quoted value is left out", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil),
			v1alpha1.ReasonRejected, "rejected the object"},
		"manifest": {"the manifest is invalid before it is sent",
			&ManifestError{Field: "metadata.name", Problem: "is required"},
			v1alpha1.ReasonInvalid, "metadata.name: is required"},
		"busy": {"too many requests are retried", apierrors.NewTooManyRequests("later", 1), v1alpha1.ReasonFailed, "later"},
	} {
		reason, message := explain(fmt.Errorf("try: %w", tc.err), secret)
		require.Equal(t, tc.want, reason, "%s: %s", name, tc.reason)
		require.Contains(t, message, tc.message, tc.reason)
		require.NotContains(t, message, "hidden")
	}
	require.False(t, permanent(apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get", gr, "a", "", 0,
		true)))
}
