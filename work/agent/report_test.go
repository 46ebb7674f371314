package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func named(name string) v1alpha1.ResourceIdentifier {
	return v1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

func made(name string, action apply.Action, reason, message string) outcome {
	return outcome{id: named(name), change: apply.Change{Object: named(name), Action: action, Reason: reason,
		Message: message}}
}

func (o outcome) is(ready readiness.Result) outcome {
	o.evaluation = &evaluation{ready: ready}
	return o
}

var (
	ready       = readiness.Result{Status: readiness.Ready}
	progressing = readiness.Result{Status: readiness.Progressing, Message: "1 of 3 replicas are ready"}
	failed      = readiness.Result{Status: readiness.Failed, Message: "progress deadline exceeded"}
	ended       = readiness.Result{Status: readiness.Ready, Ends: true, Complete: true}
	running     = readiness.Result{Status: readiness.Progressing, Ends: true, Message: "1 pod runs"}
)

// short formats conditions, as in "Applied=True/Applied". It omits those that package readycondition derives from
// them, which checkReady checks.
func short(conditions []metav1.Condition) string {
	var parts []string
	for _, c := range conditions {
		if readycondition.Is(c.Type) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(parts, " ")
}

// checkReady checks that Ready is True if and only if all objects are applied and available, and the Work is neither
// progressing nor degraded.
func checkReady(t *testing.T, conditions []metav1.Condition) {
	t.Helper()
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(conditions, kind) }
	want := isTrue(v1alpha1.ConditionApplied) && isTrue(v1alpha1.ConditionAvailable) &&
		!isTrue(v1alpha1.ConditionProgressing) && !isTrue(v1alpha1.ConditionDegraded)
	require.Equal(t, want, isTrue(v1alpha1.ConditionReady), "condition Ready")
	require.Equal(t, isTrue(v1alpha1.ConditionDegraded), isTrue(v1alpha1.ConditionStalled), "condition Stalled")
}

func TestReport(t *testing.T) {
	fine := made("web", apply.Unchanged, v1alpha1.ReasonApplied, "").is(ready)
	for _, test := range []struct {
		reason     string
		found      reportInput
		conditions string
		ready      string
		message    string
		retry      bool
	}{
		{
			"all objects are applied and ready",
			reportInput{outcomes: []outcome{fine, fine}},
			"Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired",
			"2/2", "2 objects applied and ready.", false,
		},
		{
			"applied object is progressing: no retry, because the watch notifies",
			reportInput{outcomes: []outcome{fine, made("db", apply.Created, v1alpha1.ReasonApplied, "").is(progressing)}},
			"Applied=True/Applied Available=False/Progressing Progressing=True/Progressing Degraded=False/AsDesired",
			"1/2", "apps/Deployment shop/db: 1 of 3 replicas are ready", false,
		},
		{
			"failed object is degraded",
			reportInput{outcomes: []outcome{fine, made("db", apply.Unchanged, v1alpha1.ReasonApplied, "").is(failed)}},
			"Applied=True/Applied Available=False/NotReady Progressing=False/AsDesired Degraded=True/NotReady",
			"1/2", "apps/Deployment shop/db: progress deadline exceeded", false,
		},
		{
			"message names the failed object before a progressing object",
			reportInput{outcomes: []outcome{
				made("slow", apply.Unchanged, v1alpha1.ReasonApplied, "").is(progressing), made("db", apply.Unchanged,
					v1alpha1.ReasonApplied, "").is(failed),
			}},
			"Applied=True/Applied Available=False/Progressing Progressing=True/Progressing Degraded=True/NotReady",
			"0/2", "apps/Deployment shop/db: progress deadline exceeded (1 more not ready)", false,
		},
		{
			"message names the failed object before an object that is retried",
			reportInput{outcomes: []outcome{
				made("later", apply.Failed, v1alpha1.ReasonFailed, "connection refused"), made("db", apply.Unchanged,
					v1alpha1.ReasonApplied, "").is(failed),
			}},
			"Applied=False/Failed Available=False/NotApplied Progressing=True/Progressing Degraded=True/NotReady",
			"0/2", "apps/Deployment shop/db: progress deadline exceeded (1 more not ready)", true,
		},
		{
			"contested object is degraded and does not block other objects",
			reportInput{outcomes: []outcome{
				made("hpa", apply.Configured, v1alpha1.ReasonContested, "Fields are changed.").is(ready),
				fine}},
			"Applied=False/Contested Available=True/Ready Progressing=False/AsDesired Degraded=True/Contested",
			"2/2", "apps/Deployment shop/hpa: Fields are changed.", false,
		},
		{
			"completed and deleted Job",
			reportInput{outcomes: []outcome{made("job", apply.Skipped, v1alpha1.ReasonCompleted, "The Job has run.").is(ended)}},
			"Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired " +
				"Complete=True/Completed",
			"1/1", "1 object applied and ready.", false,
		},
		{
			"conflict is degraded and retried",
			reportInput{outcomes: []outcome{
				made("db", apply.Conflict, v1alpha1.ReasonInTheWay, "It is there already.").is(ready),
				fine}},
			"Applied=False/InTheWay Available=True/Ready Progressing=False/AsDesired Degraded=True/InTheWay",
			"2/2", "apps/Deployment shop/db: It is there already.", true,
		},
		{
			"failed attempt is progressing and retried",
			reportInput{outcomes: []outcome{made("db", apply.Failed, v1alpha1.ReasonFailed, "connection refused"), fine}},
			"Applied=False/Failed Available=False/NotApplied Progressing=True/Progressing Degraded=False/AsDesired",
			"1/2", "apps/Deployment shop/db: connection refused", true,
		},
		{
			"message names the rejected object and not the object that waits",
			reportInput{outcomes: []outcome{
				made("a", apply.Skipped, v1alpha1.ReasonPending, "Waits."), made("b", apply.Failed, v1alpha1.ReasonRejected,
					"Invalid."), fine,
			}},
			"Applied=False/Rejected Available=False/NotApplied Progressing=True/Progressing Degraded=True/Rejected",
			"1/3", "apps/Deployment shop/b: Invalid. (1 more not applied)", true,
		},
		{
			"refused manifest is not retried",
			reportInput{outcomes: []outcome{{id: named("a"), refused: "spec.manifests[0].kind: Required value"}, fine}},
			"Applied=False/Invalid Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Invalid",
			"1/2", "apps/Deployment shop/a: spec.manifests[0].kind: Required value", false,
		},
		{
			"refused Work",
			reportInput{refused: "spec.manifests: Too many"},
			"Applied=False/Invalid Available=False/NotApplied Progressing=False/AsDesired Degraded=True/Invalid",
			"0/0", "The Work is not applied: spec.manifests: Too many", false,
		},
		{
			"member does not permit the Work",
			reportInput{forbidden: "spec.executor: is required",
				outcomes: []outcome{made("a", apply.Skipped, v1alpha1.ReasonAgentForbidden, "")}},
			"Applied=False/AgentForbidden Available=False/NotApplied Progressing=False/AsDesired Degraded=True/AgentForbidden",
			"0/1", "The member does not permit the Work: spec.executor: is required", false,
		},
		{
			"late wave is degraded and still progressing",
			reportInput{late: true, outcomes: []outcome{
				made("a", apply.Created, v1alpha1.ReasonApplied, "").is(progressing), made("b", apply.Skipped,
					v1alpha1.ReasonPending,
					"Waits."),
			}},
			"Applied=False/Pending Available=False/NotApplied Progressing=True/Progressing Degraded=True/Timeout",
			"0/2", "apps/Deployment shop/b: Waits.", false,
		},
		{
			"running Job",
			reportInput{outcomes: []outcome{made("job", apply.Created, v1alpha1.ReasonApplied, "").is(running)}},
			"Applied=True/Applied Available=False/Progressing Progressing=True/Progressing Degraded=False/AsDesired " +
				"Complete=False/Progressing",
			"0/1", "apps/Deployment shop/job: 1 pod runs", false,
		},
		{
			"successful Job completes the Work",
			reportInput{outcomes: []outcome{fine, made("job", apply.Unchanged, v1alpha1.ReasonApplied, "").is(ended)}},
			"Applied=True/Applied Available=True/Ready Progressing=False/AsDesired Degraded=False/AsDesired " +
				"Complete=True/Completed",
			"2/2", "2 objects applied and ready.", false,
		},
		{
			"object to delete still exists",
			reportInput{outcomes: []outcome{fine}, left: []apply.Change{{Object: named("old"), Action: apply.Deleting,
				Message: "The object is being deleted."}}},
			"Applied=True/Applied Available=True/Ready Progressing=True/Progressing Degraded=False/AsDesired",
			"1/1", "apps/Deployment shop/old: The object is being deleted.", true,
		},
		{
			"suspended Work is not progressing",
			reportInput{suspended: true, outcomes: []outcome{made("a", apply.Skipped, v1alpha1.ReasonSuspended,
				"The Work is suspended.")}},
			"Applied=False/Suspended Available=False/NotApplied Progressing=False/Suspended Degraded=False/AsDesired",
			"0/1", "Suspended: nothing is changed on the member. apps/Deployment shop/a: The Work is suspended.", false,
		},
		{
			"message names the object that a clean-up waits for",
			reportInput{cleaning: true, left: []apply.Change{{Object: named("old"), Message: "It is held by finalizer x."}}},
			"Applied=False/CleaningUp Available=False/CleaningUp Progressing=True/CleaningUp Degraded=False/AsDesired",
			"0/0", "Waiting for the deletion of 1 object. apps/Deployment shop/old: It is held by finalizer x.", true,
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.found.generation, test.found.before, test.found.now = 3, &v1alpha1.WorkStatus{}, noon
			status, retry := report(test.found)
			if diff := cmp.Diff(test.conditions, short(status.Conditions)); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
			checkReady(t, status.Conditions)
			require.Equal(t, test.ready, status.Ready)
			require.Equal(t, test.message, status.Message)
			require.Equal(t, test.retry, retry)
			require.Equal(t, int64(3), status.ObservedGeneration)
		})
	}
}

// TestReport_UnchangedInputs checks that the status does not change if its inputs do not change. Otherwise it would be
// written again and again.
func TestReport_UnchangedInputs(t *testing.T) {
	outcomes := []outcome{
		made("web", apply.Created, v1alpha1.ReasonApplied, "").is(ready),
		made("db", apply.Conflict, v1alpha1.ReasonConflict, "Other field managers own fields of the object.").is(progressing),
	}
	first, _ := report(reportInput{generation: 1, before: &v1alpha1.WorkStatus{}, now: noon, outcomes: outcomes})
	again, _ := report(reportInput{generation: 1, before: &first, now: noon.Add(time.Hour), outcomes: outcomes})
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error("(-first +again)\n" + diff)
	}
	outcomes[1].change.Action, outcomes[1].change.Reason = apply.Configured, v1alpha1.ReasonApplied
	changed, _ := report(reportInput{generation: 1, before: &first, now: noon.Add(time.Hour), outcomes: outcomes})
	require.Equal(t, noon.Add(time.Hour), findCondition(changed.Conditions,
		v1alpha1.ConditionApplied).LastTransitionTime.Time)
	require.Equal(t, noon, changed.Manifests[0].Conditions[0].LastTransitionTime.Time,
		"the other manifest has not changed")
}

// TestReport_ProgressingRestartsWithGeneration checks that the timeout of a wave starts again with each generation,
// although the Work has been progressing all the time.
func TestReport_ProgressingRestartsWithGeneration(t *testing.T) {
	outcomes := []outcome{made("web", apply.Created, v1alpha1.ReasonApplied, "").is(progressing)}
	status := v1alpha1.WorkStatus{}
	for i, generation := range []int64{1, 1, 2, 2} {
		status, _ = report(reportInput{generation: generation, before: &status, now: noon.Add(time.Duration(i) * time.Hour),
			outcomes: outcomes})
		since := findCondition(status.Conditions, v1alpha1.ConditionProgressing).LastTransitionTime.Time
		require.Equal(t, noon.Add(time.Duration(generation-1)*2*time.Hour), since)
	}
}

// TestTrim checks that information about failures is kept longest, and that every status fits in the end.
func TestTrim(t *testing.T) {
	status := func(manifests, diffs, feedback, message int) v1alpha1.WorkStatus {
		var s v1alpha1.WorkStatus
		for i := range manifests {
			state := metav1.ConditionTrue
			if i%100 == 0 {
				state = metav1.ConditionFalse
			}
			m := v1alpha1.ManifestStatus{ResourceIdentifier: named(fmt.Sprintf("web-%d", i)), Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionApplied, Status: state, Reason: "Reason", Message: strings.Repeat("m", message)},
			}}
			for range diffs {
				m.Diffs = append(m.Diffs, v1alpha1.FieldDiff{Path: ".spec.replicas", Wanted: strings.Repeat("w", 100),
					Found: strings.Repeat("f", 100)})
			}
			for range feedback {
				m.Feedback = append(m.Feedback, v1alpha1.FeedbackValue{Name: "n", Value: strings.Repeat("v", 1000)})
			}
			s.Manifests = append(s.Manifests, m)
		}
		return s
	}
	for _, test := range []struct {
		reason string
		status v1alpha1.WorkStatus
		marker string
		broken int // the remaining conditions that are False
	}{
		{"short status is not changed", status(100, 2, 2, 100), "", 1},
		{"differences are trimmed", status(100, 20, 0, 100), "differences beyond the third of an object", 1},
		{"feedback is trimmed", status(1000, 1, 16, 0), "feedback", 10},
		{"long messages are trimmed before conditions", status(1000, 0, 0, 512), "messages of manifests", 10},
	} {
		t.Run(test.reason, func(t *testing.T) {
			trimmed := trim(test.status)
			require.LessOrEqual(t, size(trimmed), v1alpha1.MaxStatusBytes)
			require.Contains(t, trimmed.Truncated, test.marker)
			require.Equal(t, test.marker == "", trimmed.Truncated == "")
			require.Len(t, trimmed.Manifests, len(test.status.Manifests))
			broken := 0
			for _, m := range trimmed.Manifests {
				if len(m.Conditions) > 0 && m.Conditions[0].Status == metav1.ConditionFalse {
					broken++
				}
			}
			require.Equal(t, test.broken, broken)
		})
	}

	long := status(1000, 0, 0, 0)
	for i := range long.Manifests {
		long.Manifests[i].Name = strings.Repeat("n", 1000)
	}
	trimmed := trim(long)
	require.LessOrEqual(t, size(trimmed), v1alpha1.MaxStatusBytes)
	require.Contains(t, trimmed.Truncated, "of 1000 manifests")
}
