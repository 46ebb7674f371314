package override_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func value(text string) *apiruntime.RawExtension { return &apiruntime.RawExtension{Raw: []byte(text)} }

// rulesOf distributes operations over as many rules as they need.
func rulesOf(ops ...v1alpha1.JSONPatchOperation) *v1alpha1.Overrides {
	o := &v1alpha1.Overrides{}
	for len(ops) > 0 {
		n := min(len(ops), v1alpha1.MaxPatchOperations)
		o.Rules = append(o.Rules, v1alpha1.OverrideRule{JSONPatch: ops[:n]})
		ops = ops[n:]
	}
	return o
}

func times(n int, op func(i int) v1alpha1.JSONPatchOperation) (out []v1alpha1.JSONPatchOperation) {
	for i := range n {
		out = append(out, op(i))
	}
	return out
}

const most = v1alpha1.MaxOverrideRules * v1alpha1.MaxPatchOperations

// TestPlanFor_LimitsHostileRules checks that rules fail that are valid and small, but exceed the limits together.
func TestPlanFor_LimitsHostileRules(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	list := "[" + strings.Repeat("0,", 100_000) + "0]"
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, test := range []struct {
		reason, object string
		overrides      *v1alpha1.Overrides
		want           error
	}{
		{
			"a value that is copied into itself", `{apiVersion: v1, kind: A, metadata: {name: a}, x: {a: b}}`,
			rulesOf(times(most, func(i int) v1alpha1.JSONPatchOperation {
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchCopy, From: "/x", Path: fmt.Sprintf("/x/%d", i)}
			})...),
			override.ErrTooLarge,
		},
		{
			"many copies of a large value", `{apiVersion: v1, kind: A, metadata: {name: a}, x: [], big: ` + large + `}`,
			rulesOf(times(most, func(int) v1alpha1.JSONPatchOperation {
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchCopy, From: "/big", Path: "/x/-"}
			})...),
			override.ErrTooLarge,
		},
		{
			"many moves of a large value", `{apiVersion: v1, kind: A, metadata: {name: a}, big: ` + large + `}`,
			rulesOf(times(most, func(i int) v1alpha1.JSONPatchOperation {
				names := []string{"/big", "/z"}
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchMove, From: names[i%2], Path: names[(i+1)%2]}
			})...),
			override.ErrTooLarge,
		},
		{
			"many insertions at the start of a long list", `{apiVersion: v1, kind: A, metadata: {name: a}, x: ` + list + `}`,
			rulesOf(times(most, func(int) v1alpha1.JSONPatchOperation {
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchAdd, Path: "/x/0", Value: value("0")}
			})...),
			override.ErrTooLarge,
		},
		{
			"many removals from the start of a long list", `{apiVersion: v1, kind: A, metadata: {name: a}, x: ` + list + `}`,
			rulesOf(times(most, func(int) v1alpha1.JSONPatchOperation {
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchRemove, Path: "/x/0"}
			})...),
			override.ErrTooLarge,
		},
		{
			"each operation adds a level of nesting", `{apiVersion: v1, kind: A, metadata: {name: a}, x: {}}`,
			rulesOf(times(200, func(i int) v1alpha1.JSONPatchOperation {
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchAdd, Path: "/x" + strings.Repeat("/x", i),
					Value: value(`{}`)}
			})...),
			override.ErrTooDeep,
		},
		{
			"a nested value within a nested value", `{apiVersion: v1, kind: A, metadata: {name: a}}`,
			rulesOf(
				v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchAdd, Path: "/a", Value: value(nested(v1alpha1.MaxPatchDepth))},
				v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchCopy, From: "/a",
					Path: strings.Repeat("/a", v1alpha1.MaxPatchDepth)},
			),
			override.ErrTooDeep,
		},
		{
			"many variables with a large value in a patch", `{apiVersion: v1, kind: A, metadata: {name: a}}`,
			&v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{
				{MergePatch: value(`{"x":[` + strings.Repeat(`"${muster.cluster.properties['p']}",`, 5000) + `1]}`)}}},
			override.ErrTooLarge,
		},
		{
			"many variables with a large value in a manifest", `{apiVersion: v1, kind: A, metadata: {name: a}, x: [` +
				strings.Repeat(`"${muster.cluster.properties['p']}",`, 5000) + `1]}`,
			&v1alpha1.Overrides{ExpandManifests: true},
			override.ErrTooLarge,
		},
		{
			"an addition to an object of maximum size", `{apiVersion: v1, kind: A, metadata: {name: a}, big: ` +
				strings.Repeat("x", workv1alpha1.MaxManifestBytes-100) + `}`,
			rulesOf(v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchAdd, Path: "/z",
				Value: value(`"` + strings.Repeat("z", 200) + `"`)}),
			override.ErrTooLarge,
		},
	} {
		require.Empty(t, test.overrides.Validate(nil), test.reason)
		plan, err := override.New([]bundle.Object{parse(t, test.object)}, test.overrides)
		require.NoError(t, err, test.reason)
		cluster := &scheduler.Cluster{Name: "east", Properties: map[string]string{"p": large}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, got := plan.For(cluster)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, got, test.want, test.reason)
		// A value that was decoded takes up to 16 bytes for each of its own.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*workv1alpha1.MaxManifestBytes), test.reason)
		require.Less(t, len(got.Error()), 1000, test.reason)
	}
}
