package crds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Tests of a WorkSet that an API server has stored.

func created(t *testing.T, c client.Client, name string, change func(*v1alpha1.WorkSet)) *v1alpha1.WorkSet {
	t.Helper()
	set := decoded(t, workSet(t, ""))
	set.Name = name
	change(set)
	require.NoError(t, c.Create(t.Context(), set))
	t.Cleanup(func() { _ = c.Delete(context.Background(), set) })
	return set
}

// TestWorkSet_FieldOwnerIsImmutable checks that a WorkSet cannot change its field manager, because its Works cannot.
func TestWorkSet_FieldOwnerIsImmutable(t *testing.T) {
	c := installed(t)
	for _, test := range []struct{ reason, before, after string }{
		{"another field owner", "a", "b"},
		{"the default instead of a field owner", "a", ""},
		{"a field owner instead of the default", "", "a"},
	} {
		set := created(t, c, "owner", func(s *v1alpha1.WorkSet) { s.Spec.Work.Apply.FieldOwner = test.before })
		set.Spec.Work.Apply.FieldOwner = test.after
		err := c.Update(t.Context(), set)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to reject the object, got %v", test.reason, err)
		} else if got := crdtest.Complaints(t, err); len(got) != 1 || got[0].Field != "spec.work.apply.fieldOwner" ||
			!strings.Contains(got[0].Message, "delete the WorkSet with work.delete.action Orphan") {
			t.Errorf("%s: want one error of spec.work.apply.fieldOwner with the remedy, got %+v", test.reason, got)
		}
		set.Spec.Work = v1alpha1.WorkTemplate{Apply: workv1alpha1.ApplyPolicy{Mode: workv1alpha1.CreateOnly,
			FieldOwner: test.before}}
		require.NoError(t, c.Update(t.Context(), set), "the rest of the template may change")
		require.NoError(t, c.Delete(t.Context(), set))
	}
}

// TestWorkSet_ApprovalsOfSeveralUsers checks that each of two users who approve owns only their own approval, and
// removes no other.
func TestWorkSet_ApprovalsOfSeveralUsers(t *testing.T) {
	c := installed(t)
	set := created(t, c, "approvals", func(*v1alpha1.WorkSet) {})
	approve := func(user string, approvals ...any) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "placement.muster.dev/v1alpha1", "kind": "WorkSet",
			"metadata": map[string]any{"name": set.Name, "namespace": set.Namespace},
			"spec":     map[string]any{"placements": []any{map[string]any{"name": "fleet"}}, "approvals": approvals},
		}}
		require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner(user)), user)
	}
	stages := func() (found []string) {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		for _, approval := range set.Spec.Approvals {
			found = append(found, approval.Stage)
		}
		return found
	}
	approval := func(stage string) any { return map[string]any{"revision": "web-1", "stage": stage, "gate": "Before"} }
	approve("anna", approval("canary"))
	approve("bert", approval("rest"))
	require.Equal(t, []string{"canary", "rest"}, stages())
	approve("anna")
	require.Equal(t, []string{"rest"}, stages())
}

// TestLargestWorkSetIsStored stores a WorkSet of the maximum size in everything. The API server's budget for its rules
// and the limit of etcd for an object must suffice, and no status may be rejected because of its length.
func TestLargestWorkSetIsStored(t *testing.T) {
	c := installed(t)
	set := created(t, c, "largest", func(s *v1alpha1.WorkSet) {
		s.Annotations = map[string]string{"example.com/note": strings.Repeat("x", 256<<10-len("example.com/note"))}
		s.Spec = largestSpec(t)
		require.Empty(t, s.Spec.Validate())
	})
	require.InDelta(t, v1alpha1.MaxWorkSetSpecBytes, length(t, set.Spec), 512)

	set.Status = largestStatus()
	require.Greater(t, length(t, set.Status), v1alpha1.MaxWorkSetStatusBytes)
	set.Status.Trim()
	require.InDelta(t, v1alpha1.MaxWorkSetStatusBytes, length(t, set.Status), 32<<10)
	require.NoError(t, c.Status().Update(t.Context(), set, client.FieldOwner("controller")))

	// Another client that writes the WorkSet gets an entry in its managed fields.
	set.Labels = map[string]string{"a": "b"}
	set.Spec.Rollout.Stages[0].Before.Approval = true
	require.NoError(t, c.Update(t.Context(), set, client.FieldOwner("another")))
	t.Logf("%d bytes, the limit of etcd is 1572864: spec %d, status %d, managed fields %d", length(t, set),
		length(t, set.Spec), length(t, set.Status), length(t, set.ManagedFields))
}

// largestSpec returns a spec with the maximum number of entries in each list, and the maximum number of bytes in each
// part.
func largestSpec(t *testing.T) v1alpha1.WorkSetSpec {
	raw := func(format string, args ...any) runtime.RawExtension {
		return runtime.RawExtension{Raw: fmt.Appendf(nil, format, args...)}
	}
	longName := strings.Repeat("a", 240)
	var spec v1alpha1.WorkSetSpec
	for i := range 16 {
		spec.Placements = append(spec.Placements, v1alpha1.PlacementReference{Name: fmt.Sprint(longName, i)})
	}
	const empty = `{"apiVersion":"v1","data":{"a":""},"kind":"ConfigMap","metadata":{"name":"c000","namespace":"shop"}}`
	for i := range v1alpha1.MaxInlineManifests {
		spec.Manifests = append(spec.Manifests,
			workv1alpha1.Manifest{RawExtension: raw(
				`{"apiVersion":"v1","data":{"a":"%s"},"kind":"ConfigMap","metadata":{"name":"c%03d","namespace":"shop"}}`,
				strings.Repeat("x", v1alpha1.MaxInlineBytes/v1alpha1.MaxInlineManifests-len(empty)), i)})
	}
	spec.Overrides = &v1alpha1.Overrides{Rules: times(v1alpha1.MaxOverrideRules, func(int) v1alpha1.OverrideRule {
		return v1alpha1.OverrideRule{
			Clusters: []v1alpha1.ClusterSelector{{CEL: []string{"true"}}},
			JSONPatch: times(v1alpha1.MaxPatchOperations, func(int) v1alpha1.JSONPatchOperation {
				return v1alpha1.JSONPatchOperation{Op: v1alpha1.JSONPatchAdd, Path: "/spec/replicas/0", Value: new(raw("1"))}
			}),
		}
	})}
	for room := v1alpha1.MaxOverrideBytes - length(t, spec.Overrides.Rules); room > 0; {
		patch := raw(`{"a":"%s"}`, strings.Repeat("x", room-len(`,"mergePatch":{"a":""}`)))
		spec.Overrides.Rules[0].MergePatch, room = &patch, 0
	}
	for i := 0; length(t, spec.Work.ManifestOptions) < workv1alpha1.MaxOptionBytes-2100; i++ {
		spec.Work.ManifestOptions = append(spec.Work.ManifestOptions, workv1alpha1.ManifestOption{
			Select:    workv1alpha1.ManifestSelector{Name: fmt.Sprintf("c%03d", i)},
			Readiness: &workv1alpha1.ReadinessRule{CEL: strings.Repeat("!", 1996) + "true"},
		})
	}
	spec.Rollout.Type = v1alpha1.RolloutStages
	spec.Rollout.Stages = times(32, func(i int) v1alpha1.RolloutStage {
		return v1alpha1.RolloutStage{Name: fmt.Sprint("stage-", i), OrderBy: "example.com/wave",
			After: v1alpha1.RolloutGate{Approval: true, WaitSeconds: 60}}
	})
	spec.Approvals = times(64, func(i int) v1alpha1.RolloutApproval {
		return v1alpha1.RolloutApproval{Revision: "web-5f6d8c9b7", Stage: fmt.Sprint("stage-", i/2),
			Gate: []v1alpha1.GatePosition{v1alpha1.GateBefore, v1alpha1.GateAfter}[i%2]}
	})
	spec.Replicas = &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight,
		Weights: times(32, func(int) v1alpha1.ClusterWeight {
			return v1alpha1.ClusterWeight{Weight: 1, Clusters: v1alpha1.ClusterSelector{Names: []string{"east"}}}
		})}
	spec.Resources = times(v1alpha1.MaxSelectors, func(i int) v1alpha1.ResourceSelector {
		return v1alpha1.ResourceSelector{Group: "apps", Version: "v1", Kind: "Deployment", Name: fmt.Sprint("web-", i)}
	})
	// The defaults need some bytes.
	rest := v1alpha1.MaxWorkSetSpecBytes - 400 - length(t, spec)
	names := &spec.Replicas.Weights[0].Clusters.Names
	for i := 0; rest > 66; i++ {
		*names = append(*names, fmt.Sprintf("%060d", i))
		rest -= 63
	}
	return spec
}

// largestStatus returns a status with the maximum number of entries, with messages of ASCII letters.
func largestStatus() v1alpha1.WorkSetStatus {
	now := metav1.Now()
	id := workv1alpha1.ResourceIdentifier{Group: strings.Repeat("g", 253), Version: "v1", Kind: "Deployment",
		Namespace: strings.Repeat("n", 63), Name: strings.Repeat("d", 253)}
	counts := v1alpha1.RolloutCounts{Total: 10000, Pending: 10000, Progressing: 10000, Soaking: 10000, Succeeded: 10000,
		Failed: 10000, TimedOut: 10000}
	return v1alpha1.WorkSetStatus{
		Message: strings.Repeat("m", 512), Revision: "web-5f6d8c9b7",
		Revisions: times(64, func(i int) v1alpha1.RevisionSummary {
			return v1alpha1.RevisionSummary{Name: fmt.Sprint("web-5f6d8c9b7-", i), Number: 1 << 40, CreatedAt: now,
				Clusters: 10000}
		}),
		Rollout: v1alpha1.RolloutStatus{
			Revision: "web-5f6d8c9b7", Phase: v1alpha1.PhaseRollingBack, Message: strings.Repeat("m", 512),
			RolloutCounts: counts,
			Unwell: times(20, func(i int) v1alpha1.UnwellCluster {
				return v1alpha1.UnwellCluster{Name: fmt.Sprintf("%063d", i), Group: strings.Repeat("g", 63) + "/0"}
			}),
			Stages: times(256, func(i int) v1alpha1.RolloutStageStatus {
				return v1alpha1.RolloutStageStatus{Name: fmt.Sprint(strings.Repeat("g", 63), "/", i),
					Phase: v1alpha1.PhaseWaitingForApproval, RolloutCounts: counts, ReachedAt: &now, FinishedAt: &now}
			}),
		},
		Clusters: times(v1alpha1.MaxClusterSummaries, func(i int) v1alpha1.ClusterSummary {
			return v1alpha1.ClusterSummary{Name: fmt.Sprintf("%063d", i), State: v1alpha1.ClusterProgressing,
				Revision: "web-5f6d8c9b7", Message: strings.Repeat("m", 512)}
		}),
		Feedback: times(v1alpha1.MaxFeedbackSummaries, func(int) v1alpha1.FeedbackSummary {
			return v1alpha1.FeedbackSummary{ResourceIdentifier: id, Value: "phase", Clusters: 10000,
				Values: times(8, func(int) v1alpha1.ValueCount {
					return v1alpha1.ValueCount{Value: strings.Repeat("v", 128), Clusters: 1}
				})}
		}),
		Conditions: times(4, func(i int) metav1.Condition {
			return metav1.Condition{Type: fmt.Sprint("C", i), Status: metav1.ConditionTrue, Reason: "Because",
				Message: strings.Repeat("m", 512), LastTransitionTime: now}
		}),
	}
}

func length(t *testing.T, value any) int {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return len(text)
}

// TestWorkSetStatus_Trim checks that a status is reduced at the ends of its long lists, and only if necessary.
func TestWorkSetStatus_Trim(t *testing.T) {
	short := v1alpha1.WorkSetStatus{Clusters: []v1alpha1.ClusterSummary{{Name: "east"}}, OmittedClusters: 1}
	same := *short.DeepCopy()
	same.Trim()
	if diff := cmp.Diff(short, same); diff != "" {
		t.Errorf("a short status changes (-want +got)\n%s", diff)
	}
	for reason, status := range map[string]v1alpha1.WorkSetStatus{
		"messages with <, which has six bytes in JSON": {OmittedClusters: 5,
			Clusters: times(100, func(i int) v1alpha1.ClusterSummary {
				return v1alpha1.ClusterSummary{Name: fmt.Sprint("c", i), Message: strings.Repeat("<", 512)}
			})},
		"the largest status": largestStatus(),
	} {
		before := *status.DeepCopy()
		status.Trim()
		require.LessOrEqual(t, length(t, status), v1alpha1.MaxWorkSetStatusBytes, reason)
		kept := len(status.Clusters)
		require.Positive(t, kept, reason)
		require.Equal(t, before.OmittedClusters+int32(len(before.Clusters)-kept), status.OmittedClusters, reason)
		before.Clusters, before.OmittedClusters = before.Clusters[:kept], status.OmittedClusters
		before.Feedback = before.Feedback[:len(status.Feedback)]
		require.True(t, cmp.Equal(before, status), reason+": the remaining entries change")
	}
}
