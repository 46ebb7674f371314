package readiness_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/readiness"
)

func compiled(t testing.TB, expression string) *readiness.Rule {
	t.Helper()
	rule, err := readiness.CompileCEL(expression)
	require.NoError(t, err)
	return rule
}

func TestRule_True(t *testing.T) {
	running := object(t, database+`
status: {phase: Running, replicas: 3, load: 1.5, primary: true, endpoint: null, hosts: [a, b],
  conditions: [{type: Synced, status: "True"}]}
spec: {hosts: [a, b]}`)
	for _, test := range []struct{ reason, expression string }{
		{"string", `object.status.phase == "Running" && object.kind == "Database"`},
		{"integer and fraction", `object.status.replicas >= 3 && object.status.load < 2 && object.status.replicas > 2.5`},
		{"boolean field", `object.status.primary`},
		{"optional field with has", `has(object.status.phase) && !has(object.status.state)`},
		{"optional field with optional types", `object.?status.?state.orValue("none") == "none"`},
		{"conditions", `object.status.conditions.exists(c, c.type == "Synced" && c.status == "True")`},
		{"deep comparison of lists and maps",
			`object.status.hosts == object.spec.hosts && object.spec != object.status`},
		{"membership of a list",
			`"b" in object.status.hosts && !("c" in object.status.hosts) && "spec" in object && [1] in ` +
				`[[1]]`},
		{"result that does not depend on a missing field", `object.nothing.at.all || object.status.primary`},
		{"null", `object.status.endpoint == null`},
		{"comparison of optional values", `object.?status.?phase == optional.of("Running") && object.?no == optional.none()`},
		{"regular expression", `object.status.phase.matches("^Run") && matches(object.status.phase, "g$")`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			want := readiness.Result{Status: readiness.Ready, Message: "the readiness rule is true"}
			require.Empty(t, cmp.Diff(want, compiled(t, test.expression).Assess(running)), "(-want +got)")
		})
	}
}

func TestRule_NotTrue(t *testing.T) {
	for _, test := range []struct{ reason, expression, want string }{
		{"false expression", "object.status.phase ==\n\t\"Done\"",
			`the readiness rule is false: object.status.phase == "Done"`},
		{"missing field", `object.status.endpoint != ""`,
			`the readiness rule cannot be evaluated: no such key: endpoint, in object.status.endpoint != ""`},
		{"membership of a missing field", `object.status.phase in object.hosts`,
			`the readiness rule cannot be evaluated: no such key: hosts, in object.status.phase in object.hosts`},
		{"membership of a string", `"a" in object.status.phase`, `the readiness rule cannot be evaluated: no such overload`},
		{"result of type string", `object.status.phase`,
			`the readiness rule must return true or false, but returned type string: object.status.phase`},
		{"division by zero", `1 / object.status.zero == 1`, `the readiness rule cannot be evaluated: division by zero`},
		{"long error message is cut", `object.status[object.status.long]`,
			`the readiness rule cannot be evaluated: no such key: xxx`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			o := object(t, database+"status: {phase: Running, zero: 0, long: "+strings.Repeat("x", 10000)+"}")
			got := compiled(t, test.expression).Assess(o)
			require.Equal(t, readiness.Progressing, got.Status)
			require.True(t, strings.HasPrefix(got.Message, test.want), "want: %s\ngot: %s", test.want, got.Message)
			require.LessOrEqual(t, len(got.Message), readiness.MaxMessageBytes)
		})
	}
}

func TestRule_CompletesJob(t *testing.T) {
	done := object(t, "batch/v1 Job\nstatus: {conditions: [{type: Complete, status: 'True'}]}")
	want := readiness.Result{Status: readiness.Ready, Message: "the readiness rule is true", Ends: true, Complete: true}
	require.Empty(t, cmp.Diff(want, compiled(t, "true").Assess(done)), "(-want +got)")
}

// TestRule_Secret checks that a rule can read the keys of a Secret, and nothing else.
func TestRule_Secret(t *testing.T) {
	secret := object(t, "v1 Secret\ntype: Opaque\nmetadata: {name: a, annotations: {last-applied: hunter2}}\ndata: "+
		"{password: hunter2}\nstringData: {password: hunter2}")
	before := secret.DeepCopy()
	readsKeys := compiled(t,
		`has(object.data.password) && object.data.password == "" && object.stringData.password == "" `+
			`&& object.metadata.annotations["last-applied"] == "" && object.type == "Opaque"`)
	require.Equal(t, readiness.Ready, readsKeys.Assess(secret).Status)
	require.NotContains(t, compiled(t, `int(object.data.password) == 1`).Assess(secret).Message, "hunter2")
	require.Empty(t, cmp.Diff(before, secret), "Assess does not change the object (-before +after)")
}

func TestCompileErrors(t *testing.T) {
	for _, test := range []struct{ reason, expression, want string }{
		{"incomplete expression", `object.`, "line 1, column 8: Syntax error"},
		{"empty expression", ``, "Syntax error"},
		{"unknown variable", "true &&\n  self.status", "line 2, column 3: undeclared reference to 'self'"},
		{"result of type int", `object.size()`, "must be true or false, but is of type int"},
		{"invalid regular expression", `object.kind.matches("(")`, "invalid matches argument"},
		{"expression is too long", strings.Repeat("!", 2048) + "true", "must have at most 2048 characters, got 2052"},
		{"expression is nested too deeply", strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000),
			"expression recursion limit exceeded"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			_, err := readiness.CompileCEL(test.expression)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n", "the error fits into a condition")
			require.NotContains(t, err.Error(), "-1", "the error has no invalid line number")
		})
	}
}

// TestRule_CostLimit checks that an expensive rule is stopped, in particular where CEL itself would not stop it.
func TestRule_CostLimit(t *testing.T) {
	tenfold := func(inner string) string { // 10 to the 8 rounds
		for i := range 8 {
			inner = fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(x%d, %s)", i, inner)
		}
		return inner
	}
	doubling := func(start, step string) string { return start + strings.Repeat(step, 60) }
	o := object(t, database)
	o.Object["text"] = strings.Repeat("a", 1e6)
	o.Object["pattern"] = "a{1000}"
	many, items := map[string]any{}, []any{}
	for i := range 20000 {
		item := map[string]any{"a": "b"}
		many[fmt.Sprint(i)], items = item, append(items, item)
	}
	o.Object["map"], o.Object["list"] = many, items
	for _, test := range []struct{ reason, expression string }{
		{"nested loops", tenfold("true")},
		{"concatenation of strings of dynamic type", doubling(`[dyn("a")]`, `.map(a, a + a)`) + `.size() == 1`},
		{"concatenation of lists", doubling(`[[1]]`, `.map(a, a + a)`) + `.all(a, a.size() > 0)`},
		{"comparison of doubled lists", doubling(`[[1]]`, `.map(a, [a, a])`) + `.all(a, a == a)`},
		{"inequality of doubled lists", doubling(`[[1]]`, `.map(a, [a, a])`) + `.all(a, a != a)`},
		{"membership of a doubled list", doubling(`[dyn([1])]`, `.map(a, [a, a])`) + `.all(a, a in [a])`},
		{"comparison of doubled maps", doubling(`[dyn(1)]`, `.map(a, {1: a, 2: a})`) + `.all(a, a == a)`},
		{"comparison of optional doubled lists", doubling(`[[1]]`, `.map(a, [a, a])`) +
			`.all(a, optional.of(a) == optional.of(a))`},
		{"comparison of a large object", tenfold("object == object")},
		{"comparison of a large map with an empty one", tenfold("object.map != {}")},
		{"membership of a long list", tenfold(`!({"a": "c"} in object.list)`)},
		{"conversion of a long string", tenfold(`bytes(object.text).size() > 0`)},
		{"regular expression on a long string", tenfold(`!object.text.matches("(a*)*(b*)*c$")`)},
		{"regular expression from a field", tenfold(`!"b".matches(object.pattern)`)},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := compiled(t, test.expression).Assess(o)
			require.Equal(t, readiness.Progressing, got.Status)
			require.Contains(t, got.Message, "the readiness rule exceeds the cost limit of 10000: ")
		})
	}
}

func TestRule_ListOfThousandIsWithinCostLimit(t *testing.T) {
	items := make([]any, 1000)
	for i := range items {
		items[i] = map[string]any{"ready": true}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"items": items}}
	require.Equal(t, readiness.Ready, compiled(t, "object.items.all(i, i.ready == true)").Assess(o).Status)
}

// TestRule_Concurrent is for the race detector.
func TestRule_Concurrent(t *testing.T) {
	rule, o := compiled(t, `object.status.phase.matches("^Run") && object.status == object.status`),
		object(t, database+"status: {phase: Running}")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if got := rule.Assess(o); got.Status != readiness.Ready {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
}
