package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names that muster puts on MemberAddons and what belongs to them.
const (
	// MemberAddonFinalizer keeps a MemberAddon until the member has nothing of it any more, or the deadline has passed.
	MemberAddonFinalizer = GroupName + "/removal"
	// AddonLabel names the add-on on whatever belongs to it.
	AddonLabel = GroupName + "/addon"
	// HostedForLabel on a Work in the namespace of a hosting member names the namespace of the MemberAddon that it belongs to, which is that of the
	// member that the agent there works for.
	HostedForLabel = GroupName + "/hosted-for"
	// InstalledByAnnotation on a MemberAddon names the Placement that it is there for, as <namespace>/<name>. Where it is missing a
	// person has made the MemberAddon, and it is nobody else's to delete.
	InstalledByAnnotation = GroupName + "/installed-by"
	// AddonUIDAnnotation on a MemberAddon is the UID of the Addon that it was created for. A MemberAddon of an earlier Addon with
	// the same name, as after a restore of the hub, is not removed until a Placement has chosen its member.
	AddonUIDAnnotation = GroupName + "/addon-uid"
	// RevisionAnnotation on the first Work of an add-on on a member names the revision that the member was told last, and
	// RevisionSinceAnnotation says since when, as RFC 3339 has it.
	RevisionAnnotation      = GroupName + "/revision"
	RevisionSinceAnnotation = GroupName + "/revision-since"
)

// Annotations that a manifest of an add-on can have.
const (
	// PreDeleteAnnotation with the value "true" makes a Job or Pod one that runs before the add-on is removed, and not before. The first Work of
	// an add-on on a member has it, too, if there is such a one: so that is known when nobody can say any more what the add-on consists of.
	PreDeleteAnnotation = GroupName + "/pre-delete"
	// ScopeAnnotation says whether the kind is [ScopeCluster] or [ScopeNamespaced], where the hub cannot know.
	ScopeAnnotation = GroupName + "/scope"
	// LocationAnnotation says where a manifest goes if the agent runs on a hosting member: [LocationHosting] or [LocationMember], which
	// is the default. If the agent runs on the member all goes there.
	LocationAnnotation = GroupName + "/location"
)

// Values of the annotations of a manifest.
const (
	ScopeCluster    = "Cluster"    // it is in no namespace
	ScopeNamespaced = "Namespaced" // it is in one

	LocationMember  = "Member"  // the member that the add-on is for
	LocationHosting = "Hosting" // the member that its agent runs on
)

// MemberAddonSpec is what one member has of its own.
type MemberAddonSpec struct {
	// InstallNamespace is where the add-on's agent is on the member. Empty: as its configuration, or else the Addon says.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="installNamespace must be the name of a namespace: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// Configs count for this member instead of all others of their kinds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.filter(c, has(c.group) && c.group == 'addon.muster.dev' && c.resource == 'addontemplates').size() <= 1",message="an add-on has one AddonTemplate: remove the others"
	// +optional
	Configs []ConfigReference `json:"configs,omitempty"`

	// HostingMember is the member on which the agent for this one runs: one of the Addon's hostingMembers, or the condition Configured is
	// False. Empty: as the Placement says that it is there for, or else this member itself.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a member must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	HostingMember string `json:"hostingMember,omitempty"`

	// RemovalDeadlineSeconds, instead of the Addon's removal.deadlineSeconds, for this member, from when the MemberAddon was deleted. It may be set while
	// it is waited for. 0: at once, without hooks, for a member that is known to be gone.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	RemovalDeadlineSeconds *int32 `json:"removalDeadlineSeconds,omitempty"`
}

// Conditions of a MemberAddon.
const (
	// ConditionConfigured is True when all configurations that count are there and valid.
	ConditionConfigured = "Configured"
	// ConditionReady is True when the add-on is up to date and available. For an Addon: on all of its members. It is derived from the other conditions.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, only while an error needs an action of a user.
	ConditionStalled = "Stalled"
	// ConditionRegistrationReady is True when the add-on's agent has what it needs to reach the hub, or needs nothing.
	ConditionRegistrationReady = "RegistrationReady"
	// ConditionManifestsApplied is True when the member has all that the add-on consists of.
	ConditionManifestsApplied = "ManifestsApplied"
	// ConditionAvailable is True when the add-on is well, and Unknown while nobody can know.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the add-on is on its way to what it is to be.
	ConditionProgressing = "Progressing"
)

// Reasons of the conditions of a MemberAddon.
const (
	ReasonConfigured       = "Configured"       // all that counts is there
	ReasonConfigNotFound   = "ConfigNotFound"   // a configuration is missing
	ReasonConfigInvalid    = "ConfigInvalid"    // a configuration cannot be right: it says what
	ReasonUnsupported      = "Unsupported"      // the add-on does not take configurations of the kind, or has no such hosting member
	ReasonNotRequired      = "NotRequired"      // the add-on's agent does not need the hub
	ReasonRegistered       = "Registered"       // the agent has its credential
	ReasonRegistering      = "Registering"      // the agent has no credential yet
	ReasonNoAgent          = "NoAgent"          // the hub has no code and no template for the add-on
	ReasonManifestsFailed  = "ManifestsFailed"  // the add-on cannot say what it consists of
	ReasonApplied          = "Applied"          // the member has it all
	ReasonApplying         = "Applying"         // the member does not have it all yet
	ReasonApplyFailed      = "ApplyFailed"      // the member cannot apply it
	ReasonAvailable        = "Available"        // it is well
	ReasonNotReady         = "NotReady"         // it is not ready yet
	ReasonLeaseExpired     = "LeaseExpired"     // its agent does not renew its Lease
	ReasonMemberUnknown    = "MemberUnknown"    // the member cannot be reached
	ReasonUpdated          = "Updated"          // it is as it is to be
	ReasonUpdating         = "Updating"         // it is on its way
	ReasonWaitingForTurn   = "WaitingForTurn"   // the rollout has not come to it yet
	ReasonPreDelete        = "PreDelete"        // a hook runs before it is removed
	ReasonRemoving         = "Removing"         // it is being taken back
	ReasonAsDesired        = "AsDesired"        // nothing is degraded
	ReasonHookFailed       = "HookFailed"       // a hook has failed
	ReasonRevokeFailed     = "RevokeFailed"     // the deadline of its removal has passed, and the access of its agent cannot be revoked: it stays until that has ended
	ReasonDeadlineExceeded = "DeadlineExceeded" // the removal was forced
)

// ConfigStatus is a configuration that counts for a member.
type ConfigStatus struct {
	// ConfigReference names it.
	ConfigReference `json:",inline"`
	// DesiredHash is that of its spec, as the member is to have it; of all but its metadata and status where its kind has no spec, as a ConfigMap.
	// Empty: it is missing.
	// +optional
	DesiredHash string `json:"desiredHash,omitempty"`
	// AppliedHash is that of its spec, as the member has it. Empty: it has none yet.
	// +optional
	AppliedHash string `json:"appliedHash,omitempty"`
	// From says whose it is: Default, Placement or Member.
	From ConfigSource `json:"from"`
}

// HostingStatus says where the agent of a member runs that runs elsewhere.
type HostingStatus struct {
	// Member that it runs on.
	Member string `json:"member"`
	// Namespace there, which is that of no other member's agent.
	Namespace string `json:"namespace"`
}

// RegistrationStatus is the access of an add-on's agent to the hub.
type RegistrationStatus struct {
	// Credential that it has.
	Credential RegistrationCredential `json:"credential"`
	// Subject is who it is on the hub. Who wants it to have more than it has gives it to this one.
	Subject rbacv1.Subject `json:"subject"`
	// ExpirationTime of what was issued last, by the hub's clock.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// ConfigSource says where a configuration was named.
//
// +kubebuilder:validation:Enum=Default;Placement;Member
type ConfigSource string

// Where a configuration can be named. What comes later goes before what comes earlier, for each kind as a whole.
const (
	FromDefault   ConfigSource = "Default"
	FromPlacement ConfigSource = "Placement"
	FromMember    ConfigSource = "Member"
)

// MemberAddonStatus is how an add-on is doing on a member.
type MemberAddonStatus struct {
	// ObservedGeneration is the generation of the MemberAddon that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Message is the one sentence that says how the add-on is doing and, if something is wrong, what and what to do.
	// +optional
	Message string `json:"message,omitempty"`

	// InstallNamespace is where the add-on's agent is on the member.
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// Placement that it goes by, as <namespace>/<name>: its configs, hostingMember and rollout count. That is the one that it is installed
	// by, if any, and of a MemberAddon that a person has made the one that has chosen the cluster. It stays while that Placement is missing.
	// +optional
	Placement string `json:"placement,omitempty"`

	// Hosting is where the agent runs, if not on the member itself.
	// +optional
	Hosting *HostingStatus `json:"hosting,omitempty"`

	// Registration is the access that the add-on's agent has to the hub. Unset: none, or none yet.
	// +optional
	Registration *RegistrationStatus `json:"registration,omitempty"`

	// Configs are those that count, in their order. There can be 176: 32 of the member's own, 32 of the Placement, and 8 defaults for
	// each of 14 other kinds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=176
	// +optional
	Configs []ConfigStatus `json:"configs,omitempty"`

	// DesiredRevision names all that the add-on is to be on the member: configurations and version.
	// +optional
	DesiredRevision string `json:"desiredRevision,omitempty"`

	// AppliedRevision is the one that the member was told last.
	// +optional
	AppliedRevision string `json:"appliedRevision,omitempty"`

	// RevisionSince is when it was told that.
	// +optional
	RevisionSince *metav1.MicroTime `json:"revisionSince,omitempty"`

	// Conditions: Configured, RegistrationReady, ManifestsApplied, Available, Progressing, Degraded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=12
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MemberAddon is an add-on on one member. It has the add-on's name, and is in the member's namespace.
//
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a MemberAddon has the name of its Addon, which is a DNS label of at most 50 characters"
type MemberAddon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec MemberAddonSpec `json:"spec,omitzero"`
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
