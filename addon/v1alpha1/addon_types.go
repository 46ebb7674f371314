package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// Limits of an Addon. The API server's own limit is etcd's, 1536 KiB for the whole object by default, with annotations, of which there may be
// 256, and the bookkeeping of field managers, which can take a third more than the spec. A test stores an Addon with all of it.
const (
	// MaxAddonSpecBytes is how long the spec of an Addon may be, as JSON.
	MaxAddonSpecBytes = 256 << 10
	// MaxAddonStatusBytes is how long the status of an Addon may be, as JSON; see [AddonStatus.Trim].
	MaxAddonStatusBytes = 256 << 10
	// MaxForcedRemovals is how many forced removals the status of an Addon tells of.
	MaxForcedRemovals = 32
)

// AddonSpec says what an add-on is, and which members get it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.install) || !has(self.install.placements) || self.install.placements.all(p, !has(p.configs) || p.configs.all(c, has(self.configs) && self.configs.exists(k, k.resource == c.resource && (has(c.group) ? k.group == c.group : size(k.group) == 0))))",fieldPath=".install.placements",message="the kinds of all configs must be among spec.configs: add the kind there, or remove the config"
// +kubebuilder:validation:XValidation:rule="!has(self.install) || !has(self.install.placements) || self.install.placements.all(p, !has(p.hostingMember) || size(p.hostingMember) == 0 || has(self.hostingMembers) && p.hostingMember in self.hostingMembers)",fieldPath=".install.placements",message="each hostingMember must be among spec.hostingMembers: add it there, or remove it"
type AddonSpec struct {
	// DisplayName is for people. Empty: the name.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Description says in a sentence or two what the add-on is good for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// InstallNamespace is where its agent is on the members, unless a MemberAddon or an AddonConfig says otherwise.
	// +kubebuilder:default=muster-addons
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="installNamespace must be the name of a namespace: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// HostingMembers are the members on which its agent may run for other members, which is hosted mode: see hostingMember of a
	// placement and of a MemberAddon. Empty: the agent runs where it works. They are listed here since who may write the MemberAddon of one
	// member could else have what he likes run on any other.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a member must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	HostingMembers []string `json:"hostingMembers,omitempty"`

	// Configs are the kinds of configuration that the add-on takes, each with what counts where nothing else is said. A
	// configuration of another kind is refused: in this Addon by the API server, in a MemberAddon by its condition Configured.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Configs []ConfigKind `json:"configs,omitempty"`

	// Install says which members get the add-on.
	// +kubebuilder:default={type: Manual}
	// +optional
	Install InstallStrategy `json:"install,omitzero"`

	// Health says what the add-on's health is told by.
	// +kubebuilder:default={type: Works}
	// +optional
	Health HealthCheck `json:"health,omitzero"`

	// Removal says how the add-on is removed from a member.
	// +kubebuilder:default={}
	// +optional
	Removal RemovalPolicy `json:"removal,omitzero"`
}

// InstallType says who decides which members get an add-on.
//
// +kubebuilder:validation:Enum=Manual;Placements
type InstallType string

const (
	// InstallManual leaves it to who makes MemberAddons. It is the default.
	InstallManual InstallType = "Manual"
	// InstallPlacements gives it to the clusters of Placements. MemberAddons that somebody has made are kept, on whatever clusters; where
	// a Placement has chosen such a cluster, too, its configs and its rollout count there as well.
	InstallPlacements InstallType = "Placements"
)

// InstallStrategy says which members get an add-on.
//
// +kubebuilder:validation:XValidation:rule="!has(self.placements) || size(self.placements) == 0 || has(self.type) && self.type == 'Placements'",fieldPath=".placements",reason=FieldValueForbidden,message="placements go with type Placements only: remove them, or set the type to Placements"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Placements' || has(self.placements) && size(self.placements) > 0",fieldPath=".placements",reason=FieldValueRequired,message="placements is required with type Placements: name one, or set the type to Manual, which gives the add-on to nobody"
type InstallStrategy struct {
	// Type: Manual, or Placements.
	// +kubebuilder:default=Manual
	// +optional
	Type InstallType `json:"type,omitempty"`

	// Placements whose clusters get the add-on. A cluster that several have chosen goes by the first of them in this list alone: by its
	// configs, hostingMember and rollout, and by nothing of the others.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Placements []PlacementInstall `json:"placements,omitempty"`
}

// PlacementInstall gives an add-on to the clusters of a Placement.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.onFailure) || self.rollout.onFailure != 'RollBack'",fieldPath=".rollout.onFailure",reason=FieldValueForbidden,message="the rollout of an add-on cannot be rolled back, since configurations are not kept as they were: use Halt, and change the configuration back"
type PlacementInstall struct {
	// Namespace of the Placement.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be that of a Placement"
	Namespace string `json:"namespace"`
	// Name of the Placement. One that is not there takes the add-on away from nobody.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/%]+$') && self != '.' && self != '..'",message="name must be that of a Placement"
	Name string `json:"name"`

	// Configs count for these clusters instead of the defaults of their kinds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.filter(c, has(c.group) && c.group == 'addon.muster.dev' && c.resource == 'addontemplates').size() <= 1",message="an add-on has one AddonTemplate: remove the others"
	// +optional
	Configs []ConfigReference `json:"configs,omitempty"`

	// HostingMember is the member on which the agents for these clusters run, one of spec.hostingMembers. Empty: each runs on the cluster
	// that it is for.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	HostingMember string `json:"hostingMember,omitempty"`

	// Rollout says how a change of configuration reaches these clusters. Empty: all at once. Who gets the add-on for the first time
	// gets it in the same order and at the same pace. It cannot be rolled back.
	// +kubebuilder:default={type: All}
	// +optional
	Rollout placementv1alpha1.RolloutStrategy `json:"rollout,omitzero"`

	// Approvals open the gates of the rollout that ask for one. Their revision is that of the rollout in status.placements. Who approves
	// may own an approval alone, by server-side apply. Those of revisions that are gone do no harm.
	// +listType=map
	// +listMapKey=revision
	// +listMapKey=stage
	// +listMapKey=gate
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="size(self.revision) > 0",fieldPath=".revision",message="revision must be that of the rollout, as in status.placements: an approval is of one revision"
	// +kubebuilder:validation:items:XValidation:rule="self.stage.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".stage",message="stage must be the name of a stage: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Approvals []placementv1alpha1.RolloutApproval `json:"approvals,omitempty"`
}

// HealthType says what the health of an add-on is told by.
//
// +kubebuilder:validation:Enum=Works;Workloads;Lease;Custom;None
type HealthType string

const (
	// HealthWorks tells it by the readiness of all that was applied. It is the default.
	HealthWorks HealthType = "Works"
	// HealthWorkloads tells it by the readiness of its workloads alone: Deployments, StatefulSets and DaemonSets. Where it has none it
	// is as with HealthNone.
	HealthWorkloads HealthType = "Workloads"
	// HealthLease tells it by a Lease of the add-on's name that its agent renews in the member's namespace on the hub.
	HealthLease HealthType = "Lease"
	// HealthCustom tells it by the add-on's own function. One that has none is degraded and says so.
	HealthCustom HealthType = "Custom"
	// HealthNone takes an add-on for well that is applied.
	HealthNone HealthType = "None"
)

// HealthCheck says what the health of an add-on is told by.
//
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'Lease') || !has(self.leaseDurationSeconds)",fieldPath=".leaseDurationSeconds",reason=FieldValueForbidden,message="leaseDurationSeconds goes with type Lease only: remove it, or set the type to Lease"
type HealthCheck struct {
	// Type: Works, Workloads, Lease, Custom or None.
	// +kubebuilder:default=Works
	// +optional
	Type HealthType `json:"type,omitempty"`
	// LeaseDurationSeconds is how long after it was last seen to be renewed a Lease counts. Default: 180.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=86400
	// +optional
	LeaseDurationSeconds *int32 `json:"leaseDurationSeconds,omitempty"`
}

// RemovalPolicy says how an add-on is removed from a member.
type RemovalPolicy struct {
	// DeadlineSeconds is how long that may take, hooks included, until it is forced: what is left on the member then stays there, and
	// an event and the Addon's status.forcedRemovals say so. A MemberAddon can have a deadline of its own.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
}

// Addon is the definition of an add-on.
//
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec AddonSpec `json:"spec,omitempty"`
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
