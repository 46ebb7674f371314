package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer, labels and annotations of MemberAddons and of the objects that belong to them.
const (
	// MemberAddonFinalizer keeps a deleted MemberAddon until all objects of the add-on are removed from the member or the
	// deadline has passed.
	MemberAddonFinalizer = GroupName + "/removal"
	// AddonLabel on an object is the name of the add-on that the object belongs to.
	AddonLabel = GroupName + "/addon"
	// HostedForLabel on a Work in the namespace of a hosting member is the namespace of the MemberAddon that owns the
	// Work. This is the namespace of the member that the hosted agent manages.
	HostedForLabel = GroupName + "/hosted-for"
	// InstalledByAnnotation on a MemberAddon is the Placement for which the controller created it, as <namespace>/<name>,
	// or /<name> of a ClusterPlacement. A MemberAddon without the annotation was created by a user, and the controller
	// does not delete it.
	InstalledByAnnotation = GroupName + "/installed-by"
	// AddonUIDAnnotation on a MemberAddon is the UID of the Addon for which it was created. A MemberAddon of an earlier
	// Addon with the same name, for example after a restore of the hub, is not removed until a Placement has selected its
	// member.
	AddonUIDAnnotation = GroupName + "/addon-uid"
	// RevisionAnnotation on the first Work of an add-on on a member is the last revision that the member was assigned.
	// RevisionSinceAnnotation is the time of the assignment in RFC 3339 format.
	RevisionAnnotation      = GroupName + "/revision"
	RevisionSinceAnnotation = GroupName + "/revision-since"
)

// Annotations of the manifests of an add-on.
const (
	// PreDeleteAnnotation with the value "true" marks a Job or Pod that runs only before the add-on is removed. If there
	// is such a manifest, the first Work of the add-on on a member has the annotation too. The controller then knows about
	// the hook when the manifests of the add-on can no longer be rendered.
	PreDeleteAnnotation = GroupName + "/pre-delete"
	// ScopeAnnotation is the scope of the kind, [ScopeCluster] or [ScopeNamespaced]. It is required if the hub does not
	// know the kind.
	ScopeAnnotation = GroupName + "/scope"
	// LocationAnnotation defines on which member a manifest is applied if the agent runs on a hosting member:
	// [LocationHosting], or [LocationMember], which is the default. Without a hosting member, the annotation has no
	// effect.
	LocationAnnotation = GroupName + "/location"
)

// Values of the annotations of a manifest.
const (
	ScopeCluster    = "Cluster"    // the kind is cluster-scoped
	ScopeNamespaced = "Namespaced" // the kind is namespaced

	LocationMember  = "Member"  // the member that the add-on manages
	LocationHosting = "Hosting" // the member on which the agent runs
)

// MemberAddonSpec contains the overrides of an add-on for one member.
type MemberAddonSpec struct {
	// installNamespace is the namespace of the add-on's agent on the member. If empty, the namespace comes from an
	// AddonConfig or from the Addon.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="installNamespace must be the name of a namespace: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// configs replace all other configurations of their kinds on this member.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.filter(c, has(c.group) && c.group == 'addon.muster.dev' && c.resource == 'addontemplates').size() <= 1",message="an add-on must have at most one AddonTemplate: remove the others"
	// +optional
	Configs []ConfigReference `json:"configs,omitempty"`

	// hostingMember is the member on which the agent for this member runs. If it is not one of the Addon's hostingMembers,
	// the condition Configured is False. If empty, the hostingMember of the Placement applies. If that is empty too, the
	// agent runs on this member.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a member must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	HostingMember string `json:"hostingMember,omitempty"`

	// removalDeadlineSeconds overrides the Addon's removal.deadlineSeconds for this member. The deadline starts when the
	// MemberAddon is deleted, and can be changed during the removal. Zero forces the removal immediately, without hooks,
	// for a member that does not exist any more. Unset: no override.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	RemovalDeadlineSeconds *int32 `json:"removalDeadlineSeconds,omitempty"`
}

// Conditions of a MemberAddon.
const (
	// ConditionConfigured is True when all configurations that apply exist and are valid.
	ConditionConfigured = "Configured"
	// ConditionReady of a MemberAddon is True when the add-on is up to date and available on the member. ConditionReady of
	// an Addon is True when this applies to all of its members. It is derived from the other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists only while an error requires an action by a user, and is then True.
	ConditionStalled = "Stalled"
	// ConditionRegistrationReady is True when the add-on's agent has a credential for the hub, or needs none.
	ConditionRegistrationReady = "RegistrationReady"
	// ConditionManifestsApplied is True when the member has applied all objects of the add-on.
	ConditionManifestsApplied = "ManifestsApplied"
	// ConditionAvailable is True when the add-on is healthy, and Unknown while its health cannot be determined.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the add-on is being updated or removed.
	ConditionProgressing = "Progressing"
)

// Reasons of the conditions of a MemberAddon.
const (
	// ReasonConfigured: all configurations exist and are valid.
	ReasonConfigured = "Configured"
	// ReasonConfigNotFound: a configuration does not exist.
	ReasonConfigNotFound = "ConfigNotFound"
	// ReasonConfigInvalid: a configuration is invalid; the message contains the cause.
	ReasonConfigInvalid = "ConfigInvalid"
	// ReasonUnsupported: the add-on does not support the kind of a configuration, or does not list the hosting member.
	ReasonUnsupported = "Unsupported"
	// ReasonNotRequired: the add-on's agent needs no access to the hub.
	ReasonNotRequired = "NotRequired"
	// ReasonRegistered: the agent has a credential.
	ReasonRegistered = "Registered"
	// ReasonRegistering: the agent has no credential yet.
	ReasonRegistering = "Registering"
	// ReasonNoAgent: the hub has no code and no template for the add-on.
	ReasonNoAgent = "NoAgent"
	// ReasonManifestsFailed: the manifests of the add-on cannot be rendered.
	ReasonManifestsFailed = "ManifestsFailed"
	// ReasonApplied: the member has applied all objects.
	ReasonApplied = "Applied"
	// ReasonApplying: the member has not applied all objects yet.
	ReasonApplying = "Applying"
	// ReasonApplyFailed: the member cannot apply an object.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonAvailable: the add-on is available.
	ReasonAvailable = "Available"
	// ReasonNotReady: the add-on is not ready yet.
	ReasonNotReady = "NotReady"
	// ReasonLeaseExpired: the agent does not renew its Lease.
	ReasonLeaseExpired = "LeaseExpired"
	// ReasonMemberUnknown: the member is unreachable.
	ReasonMemberUnknown = "MemberUnknown"
	// ReasonUpdated: the member has the desired revision.
	ReasonUpdated = "Updated"
	// ReasonUpdating: the update is in progress.
	ReasonUpdating = "Updating"
	// ReasonWaitingForTurn: the rollout does not permit the update yet.
	ReasonWaitingForTurn = "WaitingForTurn"
	// ReasonPreDelete: a pre-delete hook is running.
	ReasonPreDelete = "PreDelete"
	// ReasonRemoving: the add-on is being removed.
	ReasonRemoving = "Removing"
	// ReasonAsDesired: nothing is degraded.
	ReasonAsDesired = "AsDesired"
	// ReasonHookFailed: a pre-delete hook failed.
	ReasonHookFailed = "HookFailed"
	// ReasonRevokeFailed: the removal deadline has passed, and the agent's access cannot be revoked. The MemberAddon
	// exists until the access is revoked.
	ReasonRevokeFailed = "RevokeFailed"
	// ReasonDeadlineExceeded: the removal was forced.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// ConfigStatus describes a configuration that applies to a member.
type ConfigStatus struct {
	// ConfigReference identifies the configuration.
	ConfigReference `json:",inline"`
	// desiredHash is the hash of the desired spec of the configuration. For a kind without a spec, such as ConfigMap, it
	// is the hash of everything except metadata and status. Empty: the configuration does not exist.
	// +optional
	DesiredHash string `json:"desiredHash,omitempty"`
	// appliedHash is the hash of the configuration that the member has. Empty: the member has none yet.
	// +optional
	AppliedHash string `json:"appliedHash,omitempty"`
	// from is the source of the configuration: Default, Placement or Member.
	// +required
	From ConfigSource `json:"from"`
}

// HostingStatus identifies the hosting member and the namespace of a hosted agent.
type HostingStatus struct {
	// member on which the agent runs.
	// +required
	Member string `json:"member"`
	// namespace of the agent on the hosting member. It is unique to this MemberAddon.
	// +required
	Namespace string `json:"namespace"`
}

// RegistrationStatus describes the access of an add-on's agent to the hub.
type RegistrationStatus struct {
	// credential is the type of the credential.
	// +required
	Credential RegistrationCredential `json:"credential"`
	// subject is the user, group or ServiceAccount that the agent authenticates as. A hub administrator can bind
	// additional roles to it.
	// +required
	Subject rbacv1.Subject `json:"subject"`
	// expirationTime is the time at which the last issued credential expires, by the clock of the hub.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// ConfigSource is the source of a configuration: the defaults of the Addon, a Placement of the Addon, or the
// MemberAddon.
// +kubebuilder:validation:Enum=Default;Placement;Member
type ConfigSource string

// Sources of a configuration. A later source replaces all configurations of the same kind of an earlier source.
const (
	FromDefault   ConfigSource = "Default"
	FromPlacement ConfigSource = "Placement"
	FromMember    ConfigSource = "Member"
)

// MemberAddonStatus describes the observed state of an add-on on one member.
type MemberAddonStatus struct {
	// observedGeneration is the generation of the MemberAddon that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// message is a summary of the state of the add-on. If an error occurred, the message contains the cause and the next
	// step.
	// +optional
	Message string `json:"message,omitempty"`

	// installNamespace is the namespace of the add-on's agent on the member.
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// placement is the Placement whose configs, hostingMember and rollout apply, as <namespace>/<name>. It is the
	// Placement for which the MemberAddon was created. For a MemberAddon that a user created, it is the Placement that
	// selects the cluster. The value does not change while the Placement does not exist.
	// +optional
	Placement string `json:"placement,omitempty"`

	// hosting identifies the hosting member, if the agent runs on another member. Unset: the agent runs on this member.
	// +optional
	Hosting *HostingStatus `json:"hosting,omitempty"`

	// registration describes the access of the add-on's agent to the hub. Unset: the agent has no access, or no access
	// yet.
	// +optional
	Registration *RegistrationStatus `json:"registration,omitempty"`

	// configs are the configurations that apply, in order. There can be up to 176: 32 of the member, 32 of the Placement,
	// and 8 defaults for each of 14 other kinds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=176
	// +optional
	Configs []ConfigStatus `json:"configs,omitempty"`

	// supportedConfigs are the kinds of configuration that spec.configs may contain, as listed in spec.configs of the
	// Addon.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	SupportedConfigs []metav1.GroupResource `json:"supportedConfigs,omitempty"`

	// desiredRevision identifies the desired configuration and version of the add-on on the member.
	// +optional
	DesiredRevision string `json:"desiredRevision,omitempty"`

	// appliedRevision is the last revision that the member was assigned.
	// +optional
	AppliedRevision string `json:"appliedRevision,omitempty"`

	// revisionSince is the time at which the member was assigned appliedRevision.
	// +optional
	RevisionSince *metav1.MicroTime `json:"revisionSince,omitempty"`

	// conditions of the MemberAddon: Ready, Stalled, Configured, RegistrationReady, ManifestsApplied, Available,
	// Progressing and Degraded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=12
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MemberAddon represents an add-on on one member. It has the name of the Addon and is in the member's namespace on the
// hub.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=muster
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Configured",type=string,JSONPath=`.status.conditions[?(@.type=="Configured")].status`,priority=1
// +kubebuilder:printcolumn:name="Registered",type=string,JSONPath=`.status.conditions[?(@.type=="RegistrationReady")].status`,priority=1
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ManifestsApplied")].status`,priority=1
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.hosting.member`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a MemberAddon must have the name of its Addon: a DNS label of at most 50 characters"
type MemberAddon struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the MemberAddon.
	// +kubebuilder:default={}
	// +optional
	Spec MemberAddonSpec `json:"spec,omitzero"`
	// status is the observed state of the MemberAddon.
	// +optional
	Status MemberAddonStatus `json:"status,omitzero"`
}

// MemberAddonList is a list of MemberAddons.
//
// +kubebuilder:object:root=true
type MemberAddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberAddon `json:"items"`
}
