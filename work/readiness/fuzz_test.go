package readiness_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/readiness"
)

func requireValid(t *testing.T, result readiness.Result) {
	require.Contains(t, []readiness.Status{readiness.Ready, readiness.Progressing, readiness.Failed, readiness.Unknown},
		result.Status)
	require.LessOrEqual(t, len(result.Message), readiness.MaxMessageBytes)
	require.True(t, utf8.ValidString(result.Message))
	require.True(t, result.Ends || !result.Complete, "only objects that end can be complete")
}

// FuzzAssess evaluates any JSON object.
func FuzzAssess(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":3,"paused":true},` +
			`"status":{"observedGeneration":2,"conditions":[{"type":"Progressing"}]}}`,
		`{"apiVersion":"batch/v1","kind":"Job","spec":{"suspend":true},"status":{"conditions":[{"type":"Failed",` +
			`"status":"True"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","containerStatuses":[{"name":"a",` +
			`"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,` +
			`"desiredNumberScheduled":-1}}`,
		`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"replicas":-1,` +
			`"updateStrategy":{"rollingUpdate":{"partition":9}}},"status":7}`,
		`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":1}}}`,
		`{"kind":1,"metadata":[]}`,
		`{"apiVersion":"a/b/c","kind":"X","status":{"conditions":[{"type":"Ready","status":"False",` +
			`"observedGeneration":1}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o unstructured.Unstructured
		_ = o.UnmarshalJSON(data) // a failed decode may leave a partial object
		requireValid(t, readiness.Registry{}.Assess(&o))
	})
}

// FuzzRule compiles any text, and evaluates an object if it is a rule.
func FuzzRule(f *testing.F) {
	for _, seed := range []string{
		"", "true", "object", `object.status.phase == "Running"`, `has(object.status.x)`, `object.?a.?b.orValue(1) == 2`,
		`object.status.conditions.exists(c, c.type == "Ready")`,
		`object == object`, `[object] == [object]`, `object in [object]`, `"a" in object`, `{object: 1} == {}`,
		`object.map(k, object[k]) == []`, `object.status.n > 1.5`, `[[1]].map(a, [a, a]).all(a, a == a)`,
		`object.status.phase.matches(object.status.phase)`, `dyn(object.status.phase) + object.status.phase == ""`,
		`optional.of(object) == optional.none()`, `timestamp(object.status.phase) < timestamp(1)`,
		"((((((((((true))))))))))", "--------1 == 1", "\xff\x00", `type(object) == map`, `object.status.n / 0 == 1`,
		`b"\xff" == bytes(object.status.phase)`, `object[?"a"] == optional.none()`, `[?object.?a].size() == 0`,
	} {
		f.Add(seed, "Running", int64(3))
	}
	f.Fuzz(func(t *testing.T, expression, phase string, n int64) {
		rule, err := readiness.CompileCEL(expression)
		if err != nil {
			return
		}
		requireValid(t, rule.Assess(&unstructured.Unstructured{Object: map[string]any{
			"kind": "Job", "status": map[string]any{"phase": phase, "n": n,
				"conditions": []any{map[string]any{"type": "Ready", "status": phase}}},
		}}))
	})
}
