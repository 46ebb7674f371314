package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Limits of a WorkSet. The API server's own limit is etcd's, 1536 KiB for the whole object by default. Of these the
// spec may have 928, which is the manifests' 512, the overrides' 256 ([MaxOverrideBytes]), the 128 of
// work.manifestOptions ([workv1alpha1.MaxOptionBytes]) and 32 for all else; the status 256; and annotations 256, which
// is the API server's limit. That leaves 96 for labels and the bookkeeping of field managers. A test stores a WorkSet
// with all of it.
//
// JSON is measured as the API server stores it: <, > and & are six bytes each.
const (
	// MaxSelectors is how many selectors of resources a WorkSet may have.
	MaxSelectors = 32
	// MaxInlineManifests is how many manifests a WorkSet may have itself. Selectors can bring more.
	MaxInlineManifests = 200
	// MaxInlineBytes is how long they may be together, as JSON.
	MaxInlineBytes = 512 << 10
	// MaxWorkSetSpecBytes is how long the spec of a WorkSet may be, as JSON.
	MaxWorkSetSpecBytes = 928 << 10
	// MaxWorkSetStatusBytes is how long the status of a WorkSet may be, as JSON; see [WorkSetStatus.Trim].
	MaxWorkSetStatusBytes = 256 << 10
	// MaxClusterSummaries is how many clusters the status of a WorkSet tells of.
	MaxClusterSummaries = 100
	// MaxFeedbackSummaries is how many values the status of a WorkSet sums up.
	MaxFeedbackSummaries = 64
)

// WorkSetSpec says what is to be on which clusters, and how it gets there.
//
// +kubebuilder:validation:XValidation:rule="has(self.resources) && size(self.resources) > 0 || has(self.manifests) && size(self.manifests) > 0",message="there is nothing to distribute: give it resources, manifests or both; to take everything back delete the WorkSet"
type WorkSetSpec struct {
	// placements whose clusters get the objects. A cluster that several have chosen gets them once.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Placements []PlacementReference `json:"placements"`

	// resources select objects of the hub, which the clusters get as they are there, without what is of the hub alone,
	// such as status and owners. A change of one of them is a new revision.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Resources []ResourceSelector `json:"resources,omitempty"`

	// allowEmpty says that a selector of resources may match nothing although it matched objects before, and that the
	// clusters then lose these objects. Default: false. The clusters keep what they have, and the condition Degraded has
	// the reason SelectionEmpty.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`

	// manifests are objects as one would write them for kubectl, by the rules of a Work: a namespace is not filled in.
	// What is selected as well is taken from here. Together they may be 512 KiB long.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	Manifests []workv1alpha1.Manifest `json:"manifests,omitempty"`

	// overrides say what some clusters get that is not what all get.
	// +optional
	Overrides *Overrides `json:"overrides,omitempty"`

	// replicas divides the replicas of workloads among the clusters. Unset: each cluster gets what the objects say.
	// +optional
	Replicas *ReplicaDivision `json:"replicas,omitempty"`

	// work says how the members apply the objects, and what becomes of them in the end.
	// +kubebuilder:default={}
	// +optional
	Work WorkTemplate `json:"work,omitzero"`

	// rollout says how a new revision reaches the clusters. Empty: all at once.
	// +kubebuilder:default={type: All}
	// +optional
	Rollout RolloutStrategy `json:"rollout,omitzero"`

	// approvals open the gates of the rollout that ask for one. Who approves may own an approval alone, by server-side
	// apply. Those of revisions that are gone do no harm.
	// +listType=map
	// +listMapKey=revision
	// +listMapKey=stage
	// +listMapKey=gate
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="size(self.revision) > 0",fieldPath=".revision",message="revision must be the name of one, as in status.revisions: an approval is of one revision"
	// +kubebuilder:validation:items:XValidation:rule="self.stage.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".stage",message="stage must be the name of a stage: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Approvals []RolloutApproval `json:"approvals,omitempty"`

	// revision is that which the clusters shall have, one of status.revisions: to roll back, or to hold what is there
	// while the objects change. Empty: what resources and manifests say now.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`

	// revisionHistoryLimit is how many revisions are kept that no cluster has and that are not needed otherwise.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// PlacementReference names a Placement in the same namespace.
type PlacementReference struct {
	// name of the Placement. One that is not there takes nothing away from clusters: what was distributed stays until the
	// reference is removed or the Placement is back.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ResourceSelector selects objects of one kind. Of those that it matches the ones are left out that no member should
// get, such as the events of the hub; one that is selected by its name and cannot travel is an error.
//
// +kubebuilder:validation:XValidation:rule="!has(self.labelSelector) || !has(self.name) || size(self.name) == 0",fieldPath=".labelSelector",reason=FieldValueForbidden,message="an object has one name: remove the labelSelector, or the name"
type ResourceSelector struct {
	// group of the objects' API; empty is the core one.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="group must be that of an API, such as apps, and is empty for the core group"
	// +optional
	Group string `json:"group,omitempty"`

	// version of the objects' API. Empty: the one that the hub prefers.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="version must be that of an API, such as v1, and is empty for the one that the hub prefers"
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the objects.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')",message="kind must be that of an API, such as Deployment"
	Kind string `json:"kind"`

	// namespace of the objects. Empty: that of the WorkSet, where the kind is namespaced. What a WorkSet may select
	// besides its own namespace and what is in it is for the hub's operator to say.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of one, and is empty for that of the WorkSet"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object. Empty: all that labelSelector matches.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[^/%]+$') && self != '.' && self != '..'",message="name must be that of an object, which has no / and no %; use labelSelector for several"
	// +optional
	Name string `json:"name,omitempty"`

	// labelSelector matches the labels of objects. Empty: all of the kind.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// DivisionStrategy says how replicas are divided.
//
// +kubebuilder:validation:Enum=Duplicated;StaticWeight;DynamicWeight;Aggregated
type DivisionStrategy string

const (
	// DivisionDuplicated gives each cluster all replicas.
	DivisionDuplicated DivisionStrategy = "Duplicated"
	// DivisionStaticWeight divides in proportion to weights.
	DivisionStaticWeight DivisionStrategy = "StaticWeight"
	// DivisionDynamicWeight divides in proportion to what the clusters have room for.
	DivisionDynamicWeight DivisionStrategy = "DynamicWeight"
	// DivisionAggregated uses as few clusters as possible.
	DivisionAggregated DivisionStrategy = "Aggregated"
)

// ReplicaDivision divides the replicas of workloads among clusters: what an object says is then the sum over all of
// them.
//
// +kubebuilder:validation:XValidation:rule="self.strategy == 'StaticWeight' || !has(self.weights) || size(self.weights) == 0",fieldPath=".weights",reason=FieldValueForbidden,message="weights go with strategy StaticWeight only: remove them, or set the strategy to StaticWeight"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'StaticWeight' || !has(self.weights) || size(self.weights) == 0 || self.weights.exists(w, w.weight > 0)",fieldPath=".weights",message="nothing could be placed: give at least one entry a weight above 0, or remove all for equal shares"
type ReplicaDivision struct {
	// strategy is the way replicas are divided. Duplicated gives each cluster all replicas, StaticWeight divides by
	// weights, DynamicWeight by what the clusters have room for, Aggregated uses as few clusters as possible.
	// +required
	Strategy DivisionStrategy `json:"strategy"`

	// weights of clusters, of which the first that matches counts. A cluster that none matches gets no replicas.
	// Empty: all weigh the same.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Weights []ClusterWeight `json:"weights,omitempty"`

	// objects whose replicas are divided: those that any of the selectors matches and that have spec.replicas. Empty: all
	// Deployments, StatefulSets, ReplicaSets and ReplicationControllers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Objects []ObjectSelector `json:"objects,omitempty"`
}

// ClusterWeight is the weight of some clusters.
type ClusterWeight struct {
	// clusters that it is of.
	// +required
	Clusters ClusterSelector `json:"clusters"`
	// weight in proportion to which a cluster gets replicas, from 0, for none, to 1000000.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight int32 `json:"weight"`
}

// WorkTemplate is what the Works of a WorkSet have in common beside their manifests. Its fields mean what they mean in
// a Work.
type WorkTemplate struct {
	// apply says how the manifests are applied. Its fieldOwner cannot change.
	// +kubebuilder:default={}
	// +optional
	Apply workv1alpha1.ApplyPolicy `json:"apply,omitzero"`

	// manifestOptions say how some of the manifests are to be treated unlike the others. Where several select a manifest,
	// the later one wins, field by field. Together they may be 128 KiB long.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []workv1alpha1.ManifestOption `json:"manifestOptions,omitempty"`

	// waves say how one wave of manifests waits for the one before.
	// +kubebuilder:default={}
	// +optional
	Waves workv1alpha1.WavePolicy `json:"waves,omitzero"`

	// delete says what becomes of the objects on a cluster that is to have them no longer.
	// +kubebuilder:default={}
	// +optional
	Delete workv1alpha1.DeletePolicy `json:"delete,omitzero"`

	// executor applies, reads and deletes the objects in the name of this ServiceAccount of the member.
	// +optional
	Executor *workv1alpha1.Executor `json:"executor,omitempty"`
}

// WorkSet says what: it distributes objects to the clusters of Placements, as Works in the namespaces of the members.
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
	// +kubebuilder:validation:XValidation:rule="(has(self.work.apply.fieldOwner) ? self.work.apply.fieldOwner : '') == (has(oldSelf.work.apply.fieldOwner) ? oldSelf.work.apply.fieldOwner : '')",message="work.apply.fieldOwner cannot change, since the fields of the old owner would stay: delete the WorkSet with work.delete.action Orphan and make it anew with work.apply.takeover Always",fieldPath=".work.apply.fieldOwner"
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
