package apply

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/internal/ssa"
)

// Default waves of kinds. There is room between them for waves that users choose.
const (
	// WaveFoundations contains namespaces and definitions of custom resources.
	WaveFoundations int32 = 0
	// WaveAccounts contains service accounts. Kubernetes deletes the token Secret of an account that does not exist.
	WaveAccounts int32 = 5
	// WaveConfig contains secrets, configuration, quotas and storage, which other objects read.
	WaveConfig int32 = 10
	// WaveRoles contains roles.
	WaveRoles int32 = 20
	// WaveBindings contains bindings of roles.
	WaveBindings int32 = 25
	// WaveObjects contains services, custom resources and all kinds that are not listed.
	WaveObjects int32 = 30
	// WaveWorkloads contains workloads.
	WaveWorkloads int32 = 40
	// WaveAdmission contains webhooks and aggregated APIs, last because they can block all other objects.
	WaveAdmission int32 = 50
)

var waves = map[schema.GroupKind]int32{
	ssa.NamespaceKind:  WaveFoundations,
	ssa.DefinitionKind: WaveFoundations,

	{Kind: "ServiceAccount"}: WaveAccounts,

	{Kind: "Secret"}:                                                 WaveConfig,
	{Kind: "ConfigMap"}:                                              WaveConfig,
	{Kind: "LimitRange"}:                                             WaveConfig,
	{Kind: "ResourceQuota"}:                                          WaveConfig,
	{Kind: "PersistentVolume"}:                                       WaveConfig,
	{Kind: "PersistentVolumeClaim"}:                                  WaveConfig,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  WaveConfig,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                     WaveConfig,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              WaveConfig,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     WaveConfig,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:              WaveConfig,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               WaveConfig,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                   WaveConfig,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               WaveRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        WaveRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        WaveBindings,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: WaveBindings,

	{Kind: "Pod"}:                                           WaveWorkloads,
	{Kind: "ReplicationController"}:                         WaveWorkloads,
	{Group: "apps", Kind: "Deployment"}:                     WaveWorkloads,
	{Group: "apps", Kind: "StatefulSet"}:                    WaveWorkloads,
	{Group: "apps", Kind: "DaemonSet"}:                      WaveWorkloads,
	{Group: "apps", Kind: "ReplicaSet"}:                     WaveWorkloads,
	{Group: "batch", Kind: "Job"}:                           WaveWorkloads,
	{Group: "batch", Kind: "CronJob"}:                       WaveWorkloads,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: WaveWorkloads,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     WaveAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   WaveAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        WaveAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: WaveAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          WaveAdmission,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   WaveAdmission,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             WaveAdmission,
}
