package readiness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/readiness"
)

// object parses YAML whose first line may be as short as "apps/v1 Deployment".
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if head, rest, _ := strings.Cut(text, "\n"); !strings.Contains(head, ":") {
		version, kind, _ := strings.Cut(head, " ")
		text = fmt.Sprintf("apiVersion: %s\nkind: %s\n%s", version, kind, rest)
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	out := &unstructured.Unstructured{}
	require.NoError(t, out.UnmarshalJSON(data))
	return out
}

const database = "example.com/v1 Database\n"

var databaseKind = schema.GroupKind{Group: "example.com", Kind: "Database"}

func TestAssess_DeletedOrStaleStatus(t *testing.T) {
	fine := func(*unstructured.Unstructured) (readiness.Result, error) {
		return readiness.Result{Status: readiness.Ready, Message: "fine"}, nil
	}
	rule, err := readiness.CompileCEL("true")
	require.NoError(t, err)
	tests := []struct{ reason, object, want string }{
		{"object that is being deleted", database + "metadata: {deletionTimestamp: 2026-01-01T00:00:00Z}",
			"the object is being deleted"},
		{"status of an earlier generation",
			database + "metadata: {generation: 2}\nstatus: {observedGeneration: 1}",
			"the status describes generation 1; waiting for generation 2 to be observed"},
		{"status of a later generation, after a restore",
			database + "metadata: {generation: 2}\nstatus: {observedGeneration: 7}",
			"the status describes generation 7; waiting for generation 2 to be observed"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			want := readiness.Result{Status: readiness.Progressing, Message: test.want}
			for name, got := range map[string]readiness.Result{
				"defaults": readiness.Registry(nil).Assess(object(t, test.object)),
				"own":      readiness.Registry{databaseKind: fine}.Assess(object(t, test.object)),
				"rule":     rule.Assess(object(t, test.object)),
			} {
				require.Empty(t, cmp.Diff(want, got), "%s (-want +got)", name)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	returns := func(result readiness.Result, err error) readiness.Func {
		return func(*unstructured.Unstructured) (readiness.Result, error) { return result, err }
	}
	unknown := func(message string) readiness.Result {
		return readiness.Result{Status: readiness.Unknown, Message: message}
	}
	all := readiness.Result{Status: readiness.Ready, Message: "backed up", Ends: true, Complete: true}
	tests := []struct {
		reason string
		own    readiness.Func
		want   readiness.Result
	}{
		{"rule of the registry takes precedence", returns(all, nil), all},
		{"nil rule is ignored", nil, readiness.Result{Status: readiness.Failed, Message: "disk is full"}},
		{"error of a rule is Unknown", returns(all, errors.New("no idea")), unknown("the readiness rule failed: no idea")},
		{"panic of a rule is Unknown", func(*unstructured.Unstructured) (readiness.Result, error) { panic("oops") },
			unknown("the readiness rule panicked: oops")},
		{"empty status of a rule is Unknown", returns(readiness.Result{}, nil),
			unknown(`the readiness rule returned the invalid status ""`)},
		{"message is cleaned to one line",
			returns(readiness.Result{Status: readiness.Failed, Message: " a\n\tb\x00\xff "}, nil),
			readiness.Result{Status: readiness.Failed, Message: "a b\x00"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			stalled := object(t, database+"status: {conditions: [{type: Stalled, status: 'True', message: disk is full}]}")
			got := readiness.Registry{databaseKind: test.own}.Assess(stalled)
			require.Empty(t, cmp.Diff(test.want, got), "(-want +got)")
		})
	}
}

func TestAssess_NoObject(t *testing.T) {
	rule, err := readiness.CompileCEL("true")
	require.NoError(t, err)
	for _, nothing := range []*unstructured.Unstructured{nil, {}} {
		require.Equal(t, readiness.Unknown, readiness.Registry(nil).Assess(nothing).Status)
		require.Equal(t, readiness.Unknown, rule.Assess(nothing).Status)
	}
}

func TestAssess_MessageLimit(t *testing.T) {
	for _, filler := range []string{"x", "ä", "€", "😀", "x ", "\n"} {
		got := readiness.Registry{databaseKind: func(*unstructured.Unstructured) (readiness.Result, error) {
			return readiness.Result{}, errors.New(strings.Repeat(filler, 1e6))
		}}.Assess(object(t, database)).Message
		require.LessOrEqual(t, len(got), readiness.MaxMessageBytes)
		require.True(t, utf8.ValidString(got), "%q is cut between characters", got)
		require.Equal(t, filler != "\n", strings.HasSuffix(got, "…"), "%q has no ellipsis for the omitted text", got)
	}
}

// TestDefaults_FailedJobBeingDeleted checks that the failure of a Job is still reported while its TTL deletes it, and
// that other objects that are being deleted are only reported as such.
func TestDefaults_FailedJobBeingDeleted(t *testing.T) {
	const job = "batch/v1 Job\nmetadata: {deletionTimestamp: 2026-01-01T00:00:00Z}\n" +
		"status: {conditions: [{type: CONDITION, status: 'True', reason: x}]}"
	for condition, want := range map[string]readiness.Result{
		"Failed":   {Status: readiness.Failed, Message: "the Job has failed: x", Ends: true},
		"Complete": {Status: readiness.Progressing, Message: "the object is being deleted", Ends: true},
	} {
		got := readiness.Registry{}.Assess(object(t, strings.ReplaceAll(job, "CONDITION", condition)))
		require.Empty(t, cmp.Diff(want, got), "(-want +got)")
	}
}
