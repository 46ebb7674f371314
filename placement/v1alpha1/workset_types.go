package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Limits of a WorkSet. The size of a stored object is limited by etcd, to 1536 KiB by default. The parts of a WorkSet
// share it:
//
//   - The spec has 928 KiB: 512 KiB for manifests, 256 KiB for overrides ([MaxOverrideBytes]), 128 KiB for
//     work.manifestOptions ([workv1alpha1.MaxOptionBytes]), and 32 KiB for the other fields.
//   - The status has 256 KiB.
//   - Annotations have 256 KiB, which is the limit of the API server.
//   - Labels and managed fields have the remaining 96 KiB.
//
// A test stores a WorkSet that uses all of these limits.
//
// Sizes are those of JSON as the API server stores it: each of the characters <, > and & takes six bytes.
const (
	// EveryKind is the kind of a ResourceSelector that selects the objects of all kinds in a namespace.
	EveryKind = "*"
	// MaxSelectors is the maximum number of resource selectors of a WorkSet.
	MaxSelectors = 32
	// MaxInlineManifests is the maximum number of manifests in spec.manifests. Selectors can add more.
	MaxInlineManifests = 200
	// MaxInlineBytes is the maximum total size of spec.manifests as JSON.
	MaxInlineBytes = 512 << 10
	// MaxWorkSetSpecBytes is the maximum size of the spec of a WorkSet as JSON.
	MaxWorkSetSpecBytes = 928 << 10
	// MaxWorkSetStatusBytes is the maximum size of the status of a WorkSet as JSON. See [WorkSetStatus.Trim].
	MaxWorkSetStatusBytes = 256 << 10
	// MaxClusterSummaries is the maximum number of clusters in the status of a WorkSet.
	MaxClusterSummaries = 100
	// MaxFeedbackSummaries is the maximum number of values that the status of a WorkSet aggregates.
	MaxFeedbackSummaries = 64
)

// WorkSetSpec defines which objects are distributed to which clusters, and how.
//
// +kubebuilder:validation:XValidation:rule="has(self.resources) && size(self.resources) > 0 || has(self.manifests) && size(self.manifests) > 0",message="resources or manifests is required; to remove all objects from the clusters, delete the WorkSet"
type WorkSetSpec struct {
	// placements are the Placements whose clusters get the objects. A cluster that several Placements select gets the
	// objects once.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Placements []PlacementReference `json:"placements"`

	// resources select objects of the hub. The clusters get them without the fields that belong to the hub, such as status
	// and owner references. A change of a selected object creates a new revision.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Resources []ResourceSelector `json:"resources,omitempty"`

	// allowEmpty permits a resource selector that matched objects before to match none, so that these objects are removed
	// from the clusters. Default: false, so that the clusters keep the objects, and the condition Degraded has the reason
	// SelectionEmpty.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// manifests are objects in the form that kubectl apply reads. The rules of a Work apply: no default namespace is set.
	// If resources select the same object, the manifest takes precedence. The maximum total size is 512 KiB.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Manifests []workv1alpha1.Manifest `json:"manifests,omitempty"`

	// overrides change the objects for some clusters.
	// +optional
	Overrides *Overrides `json:"overrides,omitempty"`

	// replicas divides the replicas of workloads among the clusters. Unset: each cluster gets the number in the object.
	// +optional
	Replicas *ReplicaDivision `json:"replicas,omitempty"`

	// work defines how the members apply the objects, and what happens to objects that are no longer desired.
	// +kubebuilder:default={}
	// +optional
	Work WorkTemplate `json:"work,omitzero"`

	// rollout defines how a new revision reaches the clusters. Empty: all clusters at once.
	// +kubebuilder:default={type: All}
	// +optional
	Rollout RolloutStrategy `json:"rollout,omitzero"`

	// approvals open the gates of the rollout that require an approval. With server-side apply, each approver can own one
	// approval. Approvals of deleted revisions are ignored.
	// +listType=map
	// +listMapKey=revision
	// +listMapKey=stage
	// +listMapKey=gate
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="size(self.revision) > 0",fieldPath=".revision",message="revision must be the name of a revision, as in status.revisions: an approval applies to one revision"
	// +kubebuilder:validation:items:XValidation:rule="self.stage.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".stage",message="stage must be the name of a stage: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Approvals []RolloutApproval `json:"approvals,omitempty"`

	// revision is the name of the desired revision, one of status.revisions. Set it to roll back, or to stay at a revision
	// while the objects change. Empty: the revision of the current resources and manifests.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`

	// revisionHistoryLimit is the number of revisions to keep in addition to those that clusters have or that are still
	// required, from 0 to 32. Default: 10.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// PlacementReference refers to a Placement in the namespace of the WorkSet or, in a ClusterWorkSet, to a
// ClusterPlacement.
type PlacementReference struct {
	// name is the name of the Placement. If the Placement does not exist, its clusters keep the distributed objects until
	// the reference is removed or the Placement exists again.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ResourceSelector selects objects of one kind. Matching objects that must not be distributed to members, such as
// Events of the hub, are left out. Selecting such an object by its name is an error.
//
// The kind "*" selects every namespaced kind of the hub, up to 128 kinds, and without a labelSelector also the
// Namespace itself. It leaves out objects that have a controller, and the kinds of muster. For allowEmpty, each kind
// counts as a selector.
//
// +kubebuilder:validation:XValidation:rule="self.kind != '*' || (!has(self.group) || size(self.group) == 0) && (!has(self.version) || size(self.version) == 0) && (!has(self.name) || size(self.name) == 0)",fieldPath=".kind",message="group, version and name must not be set in a selector for all kinds"
// +kubebuilder:validation:XValidation:rule="!has(self.labelSelector) || !has(self.name) || size(self.name) == 0",fieldPath=".labelSelector",reason=FieldValueForbidden,message="name and labelSelector must not be set together: remove one of them"
type ResourceSelector struct {
	// group is the API group of the objects. Empty: the core group.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="group must be the group of an API, such as apps, or empty for the core group"
	// +optional
	Group string `json:"group,omitempty"`

	// version is the API version of the objects. Empty: the preferred version of the hub.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="version must be the version of an API, such as v1, or empty for the preferred version of the hub"
	// +optional
	Version string `json:"version,omitempty"`

	// kind is the kind of the objects, or "*" for every namespaced kind.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')",message="kind must be the kind of an API, such as Deployment"
	Kind string `json:"kind"`

	// namespace is the namespace of the objects. Empty: the namespace of the WorkSet, if the kind is namespaced. To allow
	// a WorkSet to select objects in other namespaces, the administrator of the hub creates a SelectionGrant. A
	// ClusterWorkSet has no namespace, so its selectors of namespaced kinds must set this field.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, or empty for the namespace of the WorkSet"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the object. Empty: all objects that labelSelector matches.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[^/%]+$') && self != '.' && self != '..'",message="name must be the name of an object, without / and %; use labelSelector for several objects"
	// +optional
	Name string `json:"name,omitempty"`

	// labelSelector matches the labels of objects. Empty: all objects of the kind.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// DivisionStrategy defines how replicas are divided.
//
// +kubebuilder:validation:Enum=Duplicated;StaticWeight;DynamicWeight;Aggregated
type DivisionStrategy string

const (
	// DivisionDuplicated gives each cluster all replicas.
	DivisionDuplicated DivisionStrategy = "Duplicated"
	// DivisionStaticWeight divides in proportion to weights.
	DivisionStaticWeight DivisionStrategy = "StaticWeight"
	// DivisionDynamicWeight divides in proportion to the available capacity of the clusters.
	DivisionDynamicWeight DivisionStrategy = "DynamicWeight"
	// DivisionAggregated uses as few clusters as possible.
	DivisionAggregated DivisionStrategy = "Aggregated"
)

// ReplicaDivision divides the replicas of workloads among clusters. The number of replicas in an object is the total
// for all clusters.
//
// +kubebuilder:validation:XValidation:rule="self.strategy == 'StaticWeight' || !has(self.weights) || size(self.weights) == 0",fieldPath=".weights",reason=FieldValueForbidden,message="weights may only be set with strategy StaticWeight: remove them, or set the strategy to StaticWeight"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'StaticWeight' || !has(self.weights) || size(self.weights) == 0 || self.weights.exists(w, w.weight > 0)",fieldPath=".weights",message="at least one weight must be greater than 0; remove all entries for equal shares"
type ReplicaDivision struct {
	// strategy defines how replicas are divided. Duplicated gives each cluster all replicas, StaticWeight divides in
	// proportion to weights, DynamicWeight divides in proportion to the available capacity, and Aggregated uses as few
	// clusters as possible.
	// +required
	Strategy DivisionStrategy `json:"strategy"`

	// weights are the weights of clusters. The first entry that matches a cluster applies; a cluster without a matching
	// entry gets no replicas. Empty: all clusters have the same weight.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Weights []ClusterWeight `json:"weights,omitempty"`

	// objects select the objects whose replicas are divided: those that match any of the selectors and have spec.replicas.
	// Empty: all Deployments, StatefulSets, ReplicaSets and ReplicationControllers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Objects []ObjectSelector `json:"objects,omitempty"`
}

// ClusterWeight assigns a weight to clusters.
type ClusterWeight struct {
	// clusters select the clusters that have the weight.
	// +required
	Clusters ClusterSelector `json:"clusters"`
	// weight is the weight, from 0 to 1000000. A cluster with the weight 0 gets no replicas.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight int32 `json:"weight"`
}

// WorkTemplate contains the fields that all Works of a WorkSet have in common, except for their manifests. The fields
// have the same meaning as in a Work.
type WorkTemplate struct {
	// apply defines how the manifests are applied. Its fieldOwner cannot change.
	// +kubebuilder:default={}
	// +optional
	Apply workv1alpha1.ApplyPolicy `json:"apply,omitzero"`

	// manifestOptions override options for some manifests. If several entries select a manifest, the later entry overrides
	// the earlier one, field by field. The total size is limited to 128 KiB.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []workv1alpha1.ManifestOption `json:"manifestOptions,omitempty"`

	// waves define how one wave of manifests waits for the previous wave.
	// +kubebuilder:default={}
	// +optional
	Waves workv1alpha1.WavePolicy `json:"waves,omitzero"`

	// delete defines what happens to the objects on a cluster that must no longer have them.
	// +kubebuilder:default={}
	// +optional
	Delete workv1alpha1.DeletePolicy `json:"delete,omitzero"`

	// executor is the ServiceAccount of the member that applies, reads and deletes the objects.
	// +optional
	Executor *workv1alpha1.Executor `json:"executor,omitempty"`
}

// WorkSet distributes objects to the clusters of Placements, as Works in the namespaces of the members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ws,categories=muster
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.counts.total`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.counts.updated`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.counts.available`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the WorkSet.
	// +kubebuilder:validation:XValidation:rule="(has(self.work.apply.fieldOwner) ? self.work.apply.fieldOwner : '') == (has(oldSelf.work.apply.fieldOwner) ? oldSelf.work.apply.fieldOwner : '')",message="work.apply.fieldOwner cannot change, because the fields of the former owner would remain: delete the WorkSet with work.delete.action Orphan and create it again with work.apply.takeover Always",fieldPath=".work.apply.fieldOwner"
	// +required
	Spec WorkSetSpec `json:"spec"`
	// status is the observed state of the WorkSet.
	// +optional
	Status WorkSetStatus `json:"status,omitzero"`
}

// WorkSetList is a list of WorkSets.
//
// +kubebuilder:object:root=true
type WorkSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkSet `json:"items"`
}
