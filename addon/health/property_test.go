package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/rollout"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

func anyText(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "short.", "no end", "\xff\xfe", "<&>\x01"}),
		rapid.Map(rapid.IntRange(0, 700), func(n int) string { return strings.Repeat("é<\xff", n) }),
	).Draw(t, "text")
}

func anyProblem(t *rapid.T) Problem {
	return Problem{
		Reason: rapid.SampledFrom([]string{"", "ConfigNotFound", "ConfigInvalid", "Unsupported", "Registering", "NoAgent",
			"ManifestsFailed", "Odd"}).Draw(t, "reason"),
		Message: anyText(t), Retried: rapid.Bool().Draw(t, "retried"),
	}
}

func anyObserved(t *rapid.T) Observed {
	mostly := func(name string) bool { return rapid.IntRange(0, 5).Draw(t, name) > 0 }
	o := Observed{
		Generation: 3, Now: noon.Add(123456 * time.Microsecond), Reachable: mostly("reachable"), Current: mostly("current"),
		Registration: Registration{rapid.SampledFrom([]RegistrationState{NotRequired, Registered, Registering}).Draw(t,
			"registration"), anyText(t)},
		Desired:  rapid.SampledFrom([]string{"r2", "r2", ""}).Draw(t, "desired"),
		Revision: rapid.SampledFrom([]string{"r2", "r2", "r1", ""}).Draw(t, "revision"),
		Since:    noon.Add(-time.Duration(rapid.IntRange(0, 400).Draw(t, "since")) * time.Second),
		Hold:     rapid.SampledFrom([]rollout.HoldReason{"", "", rollout.HoldOrder, rollout.HoldFailures}).Draw(t, "hold"),
		Check: v1alpha1.HealthCheck{Type: rapid.SampledFrom([]v1alpha1.HealthType{"", "Works", "Workloads", "Lease",
			"Custom", "None"}).Draw(t, "check")},
		Answer: Answer{
			rapid.SampledFrom([]rollout.Health{"", rollout.Succeeded, rollout.Failed, rollout.Progressing, rollout.Unknown,
				"Odd"}).Draw(t, "answer"), anyText(t),
		},
	}
	if renewed := rapid.IntRange(0, 400).Draw(t, "renewed"); renewed > 0 {
		o.Renewed = noon.Add(-time.Duration(renewed) * time.Second)
	}
	if !mostly("no problem") {
		o.Problems = rapid.SliceOfN(rapid.Custom(anyProblem), 1, 3).Draw(t, "problems")
	}
	if !mostly("no removal") {
		o.Removal = &Removal{rapid.SampledFrom([]string{"", "PreDelete", "HookFailed"}).Draw(t, "removal"), anyText(t),
			rapid.Bool().Draw(t, "failed")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "works") {
		work := workOf(rapid.SampledFrom([]string{healthy, healthy, progressing, failed, rejected, unmet, repeated,
			""}).Draw(t, "conditions"))
		work.Status.Message = anyText(t)
		withManifests(work,
			rapid.SampledFrom([]string{"", "Deployment=True/Ready", "Deployment=False/Progressing",
				"DaemonSet=False/NotReady Issuer=True/Ready"}).Draw(t, "manifests"))
		if !mostly("reported") {
			work.Generation++
		}
		o.Works = append(o.Works, Of(work))
	}
	return o
}

func stored[T any](t require.TestingT, made T) (back T) {
	data, err := json.Marshal(made)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	return back
}

// TestAssess_StableAfterStoring checks that the result does not change after it is stored and read again. Otherwise a
// MemberAddon at rest would be written forever.
func TestAssess_StableAfterStoring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		given := fmt.Sprint(o)
		first := Assess(o)
		o.Before = stored(t, first.Conditions)
		if first.After > 0 {
			o.Now = o.Now.Add(first.After - 1)
		} else {
			o.Now = o.Now.Add(time.Hour)
		}
		again := Assess(o)
		require.Empty(t, cmp.Diff(o.Before, again.Conditions))
		require.Equal(t, []any{first.Message, first.Health}, []any{again.Message, again.Health})
		o.Works, o.Problems = rapid.Permutation(o.Works).Draw(t, "works"), rapid.Permutation(o.Problems).Draw(t, "problems")
		require.Empty(t, cmp.Diff(again, Assess(o)), "want a result that does not depend on the order")
		if again.After > 0 {
			o.Now = o.Now.Add(again.After)
			require.NotEqual(t, again.After, Assess(o).After)
		}
		o.Before, o.Now = nil, noon.Add(123456*time.Microsecond)
		if len(o.Works) < 2 && len(o.Problems) < 2 {
			require.Equal(t, given, fmt.Sprint(o), "Assess changed its argument")
		}
	})
}

// TestAssess_ConsistentReport checks that health and conditions do not contradict each other, and can be stored.
func TestAssess_ConsistentReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		got := Assess(o)
		statuses := map[string]metav1.ConditionStatus{}
		for _, c := range got.Conditions {
			if readycondition.Is(c.Type) {
				continue
			}
			statuses[c.Type] = c.Status
			require.NotEmpty(t, c.Reason)
			require.LessOrEqual(t, len(c.Message), 1024)
			require.True(t, utf8.ValidString(c.Message))
		}
		require.LessOrEqual(t, len(got.Message), 1024)
		require.True(t, utf8.ValidString(got.Message))
		require.GreaterOrEqual(t, got.After, time.Duration(0))
		if o.Removal != nil {
			require.Len(t, statuses, 4)
			require.Equal(t, []metav1.ConditionStatus{"False", "False", "True"},
				[]metav1.ConditionStatus{statuses["ManifestsApplied"], statuses["Available"], statuses["Progressing"]})
			return
		}
		require.Len(t, statuses, 6)
		require.NotEmpty(t, got.Message)
		require.Equal(t, got.Health == rollout.Failed, statuses["Degraded"] == metav1.ConditionTrue,
			"want Degraded to be True exactly for a failure")
		if got.Health == rollout.Failed {
			require.Equal(t, metav1.ConditionFalse, statuses["Progressing"])
		}
		if got.Health == rollout.Succeeded {
			require.Equal(t, metav1.ConditionTrue, statuses["Available"])
			require.Equal(t, metav1.ConditionTrue, statuses["RegistrationReady"])
			blocked := slices.ContainsFunc(o.Problems, func(p Problem) bool { return !p.Retried })
			require.True(t, o.Reachable && o.Revision != "" && o.Current && !blocked)
			for _, w := range o.Works {
				require.True(t, w.reported() && w.applied())
				require.True(t,
					o.Check.Type != v1alpha1.HealthWorkloads || w.Workloads.Ready == w.Workloads.Total && !w.Workloads.Failed)
			}
		}
		if !o.Reachable {
			require.Equal(t, metav1.ConditionUnknown, statuses["Available"])
			require.NotEqual(t, rollout.Succeeded, got.Health)
		}
		if statuses["Available"] == metav1.ConditionTrue {
			require.NotEmpty(t, o.Revision)
		}
	})
}

func anyAddon(t *rapid.T) AddonObserved {
	status := rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue,
		metav1.ConditionFalse, metav1.ConditionUnknown})
	o := AddonObserved{
		Generation: 3, Now: noon.Add(123456 * time.Microsecond), Deleting: rapid.IntRange(0, 4).Draw(t, "deleting") == 0,
		Awaited:  rapid.IntRange(0, 2).Draw(t, "awaited"),
		Problems: rapid.SliceOfN(rapid.Custom(anyProblem), 0, 2).Draw(t, "problems"),
		Placements: placements(rapid.SampledFrom([]placementv1alpha1.RolloutPhase{
			"", placementv1alpha1.PhaseFailed, placementv1alpha1.PhasePaused, placementv1alpha1.PhaseSucceeded,
		}).Draw(t, "phase")),
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "members") {
		o.Members = append(o.Members, Member{
			Name: fmt.Sprintf("m%d", i), Updated: rapid.Bool().Draw(t, "updated"), Available: status.Draw(t, "available"),
			Degraded: status.Draw(t, "degraded"), Removing: rapid.IntRange(0, 3).Draw(t, "removing") == 0, Message: anyText(t),
		})
		if o.Members[i].Removing {
			o.Members[i].Forced = &v1alpha1.ForcedRemoval{Member: o.Members[i].Name,
				Time: metav1.NewTime(noon.Add(time.Duration(i) * time.Millisecond)), Message: anyText(t)}
		}
	}
	return o
}

func TestStatus_StableAfterStoring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyAddon(t)
		o.Before = stored(t, Status(o))
		o.Now = o.Now.Add(time.Hour)
		require.Empty(t, cmp.Diff(o.Before, Status(o)))
		o.Members, o.Problems = rapid.Permutation(o.Members).Draw(t, "members"),
			rapid.Permutation(o.Problems).Draw(t, "problems")
		require.Empty(t, cmp.Diff(o.Before, Status(o)), "want a result that does not depend on the order")
		for _, c := range o.Before.Conditions {
			require.NotEmpty(t, c.Reason)
			require.LessOrEqual(t, len(c.Message), 1024)
		}
		c := o.Before.Counts
		require.LessOrEqual(t, c.Updated, c.Total-c.Removing)
		require.LessOrEqual(t, c.Available+c.Unknown, c.Total-c.Removing)
		require.Len(t, o.Members, int(c.Total))
	})
}
