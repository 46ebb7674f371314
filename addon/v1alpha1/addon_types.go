package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// Limits of an Addon. By default, etcd limits an object to 1536 KiB. This includes up to 256 KiB of annotations and the
// managed fields, which can be a third longer than the spec. A test stores an Addon in which every part has its maximum
// length.
const (
	// MaxAddonSpecBytes is the maximum length of the spec of an Addon in bytes, encoded as JSON.
	MaxAddonSpecBytes = 256 << 10
	// MaxAddonStatusBytes is the maximum length of the status of an Addon in bytes, encoded as JSON; see
	// [AddonStatus.Trim].
	MaxAddonStatusBytes = 256 << 10
	// MaxForcedRemovals is the maximum number of forced removals in the status of an Addon.
	MaxForcedRemovals = 32
)

// AddonSpec defines an add-on and the members that get it.
// +kubebuilder:validation:XValidation:rule="!has(self.install) || !has(self.install.placements) || self.install.placements.all(p, !has(p.configs) || p.configs.all(c, has(self.configs) && self.configs.exists(k, k.resource == c.resource && (has(c.group) ? k.group == c.group : size(k.group) == 0))))",fieldPath=".install.placements",message="the kinds of all configs must be among spec.configs: add the kind there, or remove the config"
// +kubebuilder:validation:XValidation:rule="!has(self.install) || !has(self.install.placements) || self.install.placements.all(p, !has(p.hostingMember) || size(p.hostingMember) == 0 || has(self.hostingMembers) && p.hostingMember in self.hostingMembers)",fieldPath=".install.placements",message="each hostingMember must be among spec.hostingMembers: add it there, or remove it"
type AddonSpec struct {
	// displayName is a name for user interfaces. If empty, the name of the Addon is used.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// description is a short description of the purpose of the add-on for user interfaces.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// installNamespace is the namespace of the add-on's agent on the members. A MemberAddon or an AddonConfig can override
	// it. Default: muster-addons.
	// +kubebuilder:default=muster-addons
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="installNamespace must be the name of a namespace: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// hostingMembers are the members on which the add-on's agent may run for other members (hosted mode); see
	// hostingMember of a placement and of a MemberAddon. If empty, the agent always runs on its own member. The list is a
	// safeguard: without it, a user who can write the MemberAddon of one member could run workloads on any other member.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a member must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	HostingMembers []string `json:"hostingMembers,omitempty"`

	// configs are the kinds of configuration that the add-on supports, each with its defaults. A configuration of another
	// kind is rejected: in this Addon by the API server, in a MemberAddon by the condition Configured.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Configs []ConfigKind `json:"configs,omitempty"`

	// install selects the members that get the add-on. Default: type Manual.
	// +kubebuilder:default={type: Manual}
	// +optional
	Install InstallStrategy `json:"install,omitzero"`

	// health defines how the health of the add-on is determined. Default: type Works.
	// +kubebuilder:default={type: Works}
	// +optional
	Health HealthCheck `json:"health,omitzero"`

	// removal defines how the add-on is removed from a member. Default: a deadline of 900 seconds.
	// +kubebuilder:default={}
	// +optional
	Removal RemovalPolicy `json:"removal,omitzero"`
}

// InstallType is the way in which the members of an add-on are selected.
// +kubebuilder:validation:Enum=Manual;Placements
type InstallType string

const (
	// InstallManual means that users create the MemberAddons. It is the default.
	InstallManual InstallType = "Manual"
	// InstallPlacements means that the controller creates a MemberAddon for each cluster that one of the Placements
	// selects. The controller does not delete MemberAddons that a user created. If a Placement selects the cluster of such
	// a MemberAddon, the configs and the rollout of the Placement also apply to it.
	InstallPlacements InstallType = "Placements"
)

// InstallStrategy selects the members that get an add-on.
// +kubebuilder:validation:XValidation:rule="!has(self.placements) || size(self.placements) == 0 || has(self.type) && self.type == 'Placements'",fieldPath=".placements",reason=FieldValueForbidden,message="placements may only be set with type Placements: remove them, or set the type to Placements"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Placements' || has(self.placements) && size(self.placements) > 0",fieldPath=".placements",reason=FieldValueRequired,message="placements is required with type Placements: name one, or set the type to Manual, which installs the add-on on no member"
type InstallStrategy struct {
	// type is Manual or Placements. Default: Manual.
	// +kubebuilder:default=Manual
	// +optional
	Type InstallType `json:"type,omitempty"`

	// placements whose clusters get the add-on. If several Placements select a cluster, only the first of them in this
	// list applies: its configs, its hostingMember and its rollout.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Placements []PlacementInstall `json:"placements,omitempty"`
}

// PlacementInstall installs an add-on on the clusters of a Placement.
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.onFailure) || self.rollout.onFailure != 'RollBack'",fieldPath=".rollout.onFailure",reason=FieldValueForbidden,message="the rollout of an add-on cannot be rolled back, because earlier configurations are not kept: use Halt, and change the configuration back"
type PlacementInstall struct {
	// namespace of the Placement. If empty, name is the name of a ClusterPlacement.
	// +required
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the namespace of a Placement, or empty for a ClusterPlacement"
	Namespace string `json:"namespace"`
	// name of the Placement or ClusterPlacement. If it does not exist, the add-on is not removed from any member.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/%]+$') && self != '.' && self != '..'",message="name must be the name of a Placement"
	Name string `json:"name"`

	// configs replace the defaults of their kinds on these clusters.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.filter(c, has(c.group) && c.group == 'addon.muster.dev' && c.resource == 'addontemplates').size() <= 1",message="an add-on must have at most one AddonTemplate: remove the others"
	// +optional
	Configs []ConfigReference `json:"configs,omitempty"`

	// hostingMember is the member on which the agents for these clusters run. It must be listed in spec.hostingMembers. If
	// empty, each agent runs on its own cluster.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	HostingMember string `json:"hostingMember,omitempty"`

	// rollout defines the order and the pace in which these clusters get a changed configuration. A first installation
	// uses the same order and pace. Default: type All, which updates all clusters at once. RollBack is not supported.
	// +kubebuilder:default={type: All}
	// +optional
	Rollout placementv1alpha1.RolloutStrategy `json:"rollout,omitzero"`

	// approvals open the approval gates of the rollout. The revision of an approval must be the revision of the rollout in
	// status.placements. The list is a map, so an approver can own a single entry by server-side apply. Approvals of
	// earlier revisions have no effect.
	// +listType=map
	// +listMapKey=revision
	// +listMapKey=stage
	// +listMapKey=gate
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="size(self.revision) > 0",fieldPath=".revision",message="revision must be the revision of the rollout, as in status.placements: an approval applies to one revision"
	// +kubebuilder:validation:items:XValidation:rule="self.stage.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".stage",message="stage must be the name of a stage: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Approvals []placementv1alpha1.RolloutApproval `json:"approvals,omitempty"`
}

// HealthType is the source from which the health of an add-on is determined.
// +kubebuilder:validation:Enum=Works;Workloads;Lease;Custom;None
type HealthType string

const (
	// HealthWorks uses the readiness of all applied objects. It is the default.
	HealthWorks HealthType = "Works"
	// HealthWorkloads uses the readiness of Deployments, StatefulSets and DaemonSets only. If the add-on has no such
	// objects, it behaves like HealthNone.
	HealthWorkloads HealthType = "Workloads"
	// HealthLease uses a Lease with the name of the add-on, which the add-on's agent renews in the member's namespace on
	// the hub.
	HealthLease HealthType = "Lease"
	// HealthCustom uses a function of the add-on. If the add-on provides no function, the add-on is degraded.
	HealthCustom HealthType = "Custom"
	// HealthNone reports an add-on as available when all objects are applied.
	HealthNone HealthType = "None"
)

// HealthCheck defines how the health of an add-on is determined.
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'Lease') || !has(self.leaseDurationSeconds)",fieldPath=".leaseDurationSeconds",reason=FieldValueForbidden,message="leaseDurationSeconds may only be set with type Lease: remove it, or set the type to Lease"
type HealthCheck struct {
	// type is Works, Workloads, Lease, Custom or None. Default: Works.
	// +kubebuilder:default=Works
	// +optional
	Type HealthType `json:"type,omitempty"`
	// leaseDurationSeconds is the time in seconds for which a Lease is valid after the hub observed its last renewal. It
	// can be set only with type Lease. Default: 180.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=86400
	// +optional
	LeaseDurationSeconds *int32 `json:"leaseDurationSeconds,omitempty"`
}

// RemovalPolicy defines how an add-on is removed from a member.
type RemovalPolicy struct {
	// deadlineSeconds is the maximum duration of a removal in seconds, including its hooks. After the deadline, the
	// removal is forced: the remaining objects stay on the member, and an Event and status.forcedRemovals of the Addon
	// report it. A MemberAddon can override the deadline. Default: 900.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
}

// Addon defines an add-on, the members that get it and its default configuration.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Install",type=string,JSONPath=`.spec.install.type`
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.counts.total`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.counts.updated`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.counts.available`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of an add-on must be a DNS label of at most 50 characters: it is part of the names of objects"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'heartbeat'",message="the Lease heartbeat is the member's own: give the add-on another name"
type Addon struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Addon.
	// +kubebuilder:default={}
	// +optional
	Spec AddonSpec `json:"spec,omitempty"`
	// status is the observed state of the Addon.
	// +optional
	Status AddonStatus `json:"status,omitzero"`
}

// AddonList is a list of Addons.
//
// +kubebuilder:object:root=true
type AddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Addon `json:"items"`
}
