package crds_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Objects of the maximum size fit into the API server's cost budget for rules and into etcd's object limit, and no
// status is lost because of its length.

// annotations returns annotations of the maximum size.
func annotations() map[string]string {
	return map[string]string{"example.com/note": strings.Repeat("x", 256<<10-len("example.com/note"))}
}

// updateByAnother writes an object as another user, who gets a separate entry in its managed fields.
func updateByAnother(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	object.SetLabels(map[string]string{"a": "b"})
	require.NoError(t, c.Update(t.Context(), object, client.FieldOwner("another")))
	t.Logf(
		"%d bytes, at most 1572864 in etcd; managed fields %d",
		length(t, object),
		length(t, object.GetManagedFields()),
	)
}

func length(t *testing.T, value any) int {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return len(text)
}

func TestLargestAddonIsStored(t *testing.T) {
	c := installed(t)
	addon := &v1alpha1.Addon{ObjectMeta: meta("", "largest"), Spec: largestAddon(t)}
	addon.Annotations = annotations()
	require.Empty(t, addon.Spec.Validate())
	stored(t, c, addon)
	require.InDelta(t, v1alpha1.MaxAddonSpecBytes, length(t, addon.Spec), 4096)

	addon.Status = largestStatus()
	require.Greater(t, length(t, addon.Status), v1alpha1.MaxAddonStatusBytes)
	addon.Status.Trim()
	require.LessOrEqual(t, length(t, addon.Status), v1alpha1.MaxAddonStatusBytes)
	for _, placement := range addon.Status.Placements {
		require.GreaterOrEqual(t, len(placement.Rollout.Stages), 33, "want the stages of all gates")
	}
	require.NoError(t, c.Status().Update(t.Context(), addon, client.FieldOwner("controller")))
	updateByAnother(t, c, addon)
}

// largestAddon has the maximum number of entries in each list with keys, and the maximum number of bytes.
func largestAddon(t *testing.T) v1alpha1.AddonSpec {
	t.Helper()
	spec := v1alpha1.AddonSpec{
		DisplayName: as(128), Description: as(1024), InstallNamespace: as(63),
		HostingMembers: times(64, func(i int) string { return fmt.Sprintf("m%062d", i) }),
		Health:         v1alpha1.HealthCheck{Type: v1alpha1.HealthLease, LeaseDurationSeconds: new(int32(60))},
		Removal:        v1alpha1.RemovalPolicy{DeadlineSeconds: 86400},
	}
	spec.Configs = times(16, func(i int) v1alpha1.ConfigKind {
		return v1alpha1.ConfigKind{
			Group:    "example.com",
			Resource: fmt.Sprint("configs-", i),
			Defaults: times(8, func(i int) v1alpha1.ObjectName {
				return v1alpha1.ObjectName{Namespace: "fleet", Name: fmt.Sprint("a", i)}
			}),
		}
	})
	gates := []placementv1alpha1.GatePosition{placementv1alpha1.GateBefore, placementv1alpha1.GateAfter}
	spec.Install = v1alpha1.InstallStrategy{
		Type: v1alpha1.InstallPlacements,
		Placements: times(16, func(i int) v1alpha1.PlacementInstall {
			return v1alpha1.PlacementInstall{
				Namespace: "fleet", Name: fmt.Sprint("placement-", i), HostingMember: spec.HostingMembers[i],
				Configs: times(32, func(i int) v1alpha1.ConfigReference {
					return v1alpha1.ConfigReference{
						Group:      "example.com",
						Resource:   fmt.Sprint("configs-", i%16),
						ObjectName: v1alpha1.ObjectName{Namespace: "fleet", Name: fmt.Sprint("b", i)},
					}
				}),
				Rollout: placementv1alpha1.RolloutStrategy{
					Type:                    placementv1alpha1.RolloutStages,
					ProgressDeadlineSeconds: 600,
					OnFailure:               placementv1alpha1.FailureHalt,
					State:                   placementv1alpha1.RolloutRun,
					Stages: times(32, func(i int) placementv1alpha1.RolloutStage {
						return placementv1alpha1.RolloutStage{
							Name:    fmt.Sprint("stage-", i),
							OrderBy: "example.com/wave",
							After:   placementv1alpha1.RolloutGate{Approval: true, WaitSeconds: 60},
						}
					}),
				},
				Approvals: times(64, func(i int) placementv1alpha1.RolloutApproval {
					return placementv1alpha1.RolloutApproval{
						Revision: "metrics-5f6d8c9b7a12",
						Stage:    fmt.Sprint("stage-", i/2),
						Gate:     gates[i%2],
					}
				}),
			}
		}),
	}
	for i := range (v1alpha1.MaxAddonSpecBytes - 512 - length(t, spec)) / 240 {
		spec.Install.Placements[i/32].Configs[i%32].Name += as(240)
	}
	return spec
}

// largestStatus returns a status with the maximum number of entries, with messages of ASCII letters.
func largestStatus() v1alpha1.AddonStatus {
	now := metav1.Now()
	counts := placementv1alpha1.RolloutCounts{
		Total:       10000,
		Pending:     10000,
		Progressing: 10000,
		Soaking:     10000,
		Succeeded:   10000,
		Failed:      10000,
		TimedOut:    10000,
	}
	return v1alpha1.AddonStatus{
		ObservedGeneration: 1 << 40,
		Message:            as(512),
		Counts: v1alpha1.AddonCounts{
			Total:     10000,
			Updated:   10000,
			Available: 10000,
			Degraded:  10000,
			Unknown:   10000,
			Removing:  10000,
		},
		Placements: times(16, func(int) v1alpha1.PlacementStatus {
			return v1alpha1.PlacementStatus{
				Namespace: as(63),
				Name:      as(253),
				Message:   as(512),
				Rollout: placementv1alpha1.RolloutStatus{
					Revision: as(
						63,
					),
					Phase:          placementv1alpha1.PhaseWaitingForApproval,
					Message:        as(512),
					RolloutCounts:  counts,
					StableRevision: as(63),
					StableSince:    &now,
					StartedAt:      &now,
					FinishedAt:     &now,
					Unwell: times(20, func(i int) placementv1alpha1.UnwellCluster {
						return placementv1alpha1.UnwellCluster{Name: fmt.Sprintf("%063d", i), Group: as(63) + "/0"}
					}),
					Stages: times(256, func(i int) placementv1alpha1.RolloutStageStatus {
						return placementv1alpha1.RolloutStageStatus{
							Name:          fmt.Sprint(as(63), "/", i),
							Phase:         placementv1alpha1.PhaseWaitingForApproval,
							RolloutCounts: counts,
							ReachedAt:     &now,
							FinishedAt:    &now,
						}
					}),
				},
			}
		}),
		ForcedRemovals: times(v1alpha1.MaxForcedRemovals, func(i int) v1alpha1.ForcedRemoval {
			return v1alpha1.ForcedRemoval{Member: fmt.Sprintf("%063d", i), Time: now, Message: as(512)}
		}),
		Conditions: times(2, func(i int) metav1.Condition {
			return metav1.Condition{
				Type:               fmt.Sprint("C", i),
				Status:             metav1.ConditionTrue,
				Reason:             "Because",
				Message:            as(512),
				LastTransitionTime: now,
			}
		}),
	}
}

func TestLargestMemberAddonIsStored(t *testing.T) {
	c := installed(t)
	reference := func(i int) v1alpha1.ConfigReference {
		return v1alpha1.ConfigReference{
			Group:      as(253),
			Resource:   as(63),
			ObjectName: v1alpha1.ObjectName{Namespace: as(63), Name: fmt.Sprintf("%0253d", i)},
		}
	}
	member := &v1alpha1.MemberAddon{ObjectMeta: meta("default", "largest"), Spec: v1alpha1.MemberAddonSpec{
		InstallNamespace: as(63), HostingMember: as(63), RemovalDeadlineSeconds: new(int32(0)), Configs: times(32, reference),
	}}
	member.Annotations = annotations()
	require.Empty(t, member.Spec.Validate())
	stored(t, c, member)
	now := metav1.Now()
	member.Status = v1alpha1.MemberAddonStatus{
		Message: as(
			512,
		),
		InstallNamespace: as(63),
		Placement:        as(63) + "/" + as(253),
		Hosting:          &v1alpha1.HostingStatus{Member: as(63), Namespace: as(63)},
		Registration: &v1alpha1.RegistrationStatus{
			Credential:     v1alpha1.RegistrationToken,
			Subject:        rbacv1.Subject{Kind: "ServiceAccount", Namespace: as(63), Name: as(253)},
			ExpirationTime: &now,
		},
		DesiredRevision: as(63),
		AppliedRevision: as(63),
		RevisionSince:   new(metav1.NowMicro()),
		// The maximum: see the field.
		Configs: times(32+32+14*8, func(i int) v1alpha1.ConfigStatus {
			return v1alpha1.ConfigStatus{
				ConfigReference: reference(i),
				DesiredHash:     as(64),
				AppliedHash:     as(64),
				From:            v1alpha1.FromPlacement,
			}
		}),
		Conditions: times(6, func(i int) metav1.Condition {
			return metav1.Condition{
				Type:               fmt.Sprint("C", i),
				Status:             metav1.ConditionTrue,
				Reason:             "Because",
				Message:            as(512),
				LastTransitionTime: now,
			}
		}),
	}
	require.NoError(t, c.Status().Update(t.Context(), member, client.FieldOwner("controller")))
	updateByAnother(t, c, member)
}

func TestLargestAddonConfigIsStored(t *testing.T) {
	c := installed(t)
	amounts := func() corev1.ResourceList {
		found := corev1.ResourceList{}
		for i := range 16 {
			found[corev1.ResourceName(fmt.Sprint("example.com/device-", i))] = resource.MustParse("1")
		}
		return found
	}
	config := &v1alpha1.AddonConfig{ObjectMeta: meta("default", "largest"), Spec: v1alpha1.AddonConfigSpec{
		InstallNamespace: as(63),
		Variables: times(
			128,
			func(i int) v1alpha1.Variable { return v1alpha1.Variable{Name: fmt.Sprintf("A%0127d", i)} },
		),
		NodePlacement: &v1alpha1.NodePlacement{NodeSelector: map[string]string{}},
		Registries: times(64, func(i int) v1alpha1.Registry {
			return v1alpha1.Registry{Source: fmt.Sprintf("%0512d", i), Mirror: as(512)}
		}),
		Proxy: &v1alpha1.Proxy{HTTP: as(1024), HTTPS: as(1024), NoProxy: as(4096)},
		Resources: times(64, func(i int) v1alpha1.ContainerResources {
			return v1alpha1.ContainerResources{
				Workload:  "Deployment/" + as(309),
				Container: as(63),
				Resources: v1alpha1.Resources{Requests: amounts(), Limits: amounts()},
			}
		}),
	}}
	for i := range 32 {
		config.Spec.NodePlacement.NodeSelector[fmt.Sprintf("%s/%063d", as(253), i)] = as(63)
		config.Spec.NodePlacement.Tolerations = append(config.Spec.NodePlacement.Tolerations, corev1.Toleration{
			Key: as(
				253,
			) + "/" + as(
				63,
			),
			Operator:          corev1.TolerationOpEqual,
			Value:             as(63),
			Effect:            corev1.TaintEffectNoExecute,
			TolerationSeconds: new(int64(60)),
		})
	}
	for i := range (v1alpha1.MaxAddonConfigBytes - 4200 - length(t, config.Spec)) / 4106 {
		config.Spec.Variables[i].Value = as(4096)
	}
	config.Annotations = annotations()
	require.Empty(t, config.Spec.Validate())
	stored(t, c, config)
	updateByAnother(t, c, config)
}

func TestLargestAddonTemplateIsStored(t *testing.T) {
	c := installed(t)
	const empty = `{"apiVersion":"v1","data":{"a":""},"kind":"ConfigMap","metadata":{"name":"c000","namespace":"shop"}}`
	spec := v1alpha1.AddonTemplateSpec{
		Version: as(128),
		Manifests: times(v1alpha1.MaxTemplateManifests, func(i int) v1alpha1.TemplateManifest {
			return v1alpha1.TemplateManifest{
				RawExtension: runtime.RawExtension{
					Raw: fmt.Appendf(
						nil,
						`{"apiVersion":"v1","data":{"a":"%s"},"kind":"ConfigMap","metadata":{"name":"c%03d","namespace":"shop"}}`,
						strings.Repeat("x", v1alpha1.MaxTemplateBytes/v1alpha1.MaxTemplateManifests-len(empty)),
						i,
					),
				},
			}
		}),
		Executor:     &workv1alpha1.Executor{Namespace: as(63), Name: as(253)},
		Registration: &v1alpha1.TemplateRegistration{SecretName: as(253)},
	}
	for i := 0; length(t, spec.ManifestOptions) < workv1alpha1.MaxOptionBytes-2100; i++ {
		spec.ManifestOptions = append(spec.ManifestOptions, workv1alpha1.ManifestOption{
			Select: workv1alpha1.ManifestSelector{
				Name: fmt.Sprintf("c%03d", i),
			},
			Readiness: &workv1alpha1.ReadinessRule{CEL: strings.Repeat("!", 1996) + "true"},
		})
	}
	for len(spec.Registration.Rules) < 32 && length(t, spec) < v1alpha1.MaxTemplateSpecBytes-4096 {
		spec.Registration.Rules = append(spec.Registration.Rules, rbacv1.PolicyRule{
			Verbs: []string{
				"get",
			},
			APIGroups:     []string{""},
			Resources:     []string{"configmaps"},
			ResourceNames: times(32, func(i int) string { return as(60) + fmt.Sprint(i) }),
		})
	}
	object := &v1alpha1.AddonTemplate{ObjectMeta: meta("", "largest"), Spec: spec}
	object.Annotations = annotations()
	require.Empty(t, object.Spec.Validate())
	stored(t, c, object)
	updateByAnother(t, c, object)
}
