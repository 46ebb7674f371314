package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits of Overrides. They are part of an object that is stored, and are carried out for every cluster.
const (
	// MaxOverrideRules is how many rules there may be.
	MaxOverrideRules = 64
	// MaxPatchOperations is how many operations a JSON patch may have.
	MaxPatchOperations = 64
	// MaxOverrideBytes is how long all rules may be together, as JSON.
	MaxOverrideBytes = 256 << 10
	// MaxPatchDepth is how deep the maps and lists of a patch may be nested.
	MaxPatchDepth = 64
)

// Overrides say what some clusters get that is not what all get. The zero value changes nothing.
//
// In the values of patches, and in manifests if expandManifests says so, strings may have variables of the cluster:
//
//	${muster.cluster.name}
//	${muster.cluster.labels["topology.kubernetes.io/region"]}
//	${muster.cluster.properties["example.com/cost"]:-unknown}
//
// Package placement/override has their rules.
type Overrides struct {
	// rules are carried out in their order on each object, so that the later of two that say something else wins.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Rules []OverrideRule `json:"rules,omitempty"`

	// expandManifests puts in what the variables in the strings of the manifests stand for, before any rule. Names of
	// fields, and what an object is told by (apiVersion, kind, metadata.name and metadata.namespace), cannot have any.
	// +optional
	ExpandManifests bool `json:"expandManifests,omitempty"`
}

// OverrideRule says what becomes of some objects on some clusters. With both patches the JSON patch comes first.
//
// +kubebuilder:validation:XValidation:rule="has(self.jsonPatch) && size(self.jsonPatch) > 0 || has(self.mergePatch) || has(self.delete) && self.delete",message="a rule must do something: give it a jsonPatch or a mergePatch, or set delete"
// +kubebuilder:validation:XValidation:rule="!has(self.delete) || !self.delete || !(has(self.jsonPatch) && size(self.jsonPatch) > 0 || has(self.mergePatch))",fieldPath=".delete",reason=FieldValueForbidden,message="an object that is deleted cannot be patched: remove the patches, or delete"
// +kubebuilder:validation:XValidation:rule="!has(self.delete) || !self.delete || has(self.objects) && size(self.objects) > 0",fieldPath=".objects",reason=FieldValueRequired,message="objects is required with delete: say which, since no selector stands for all objects"
type OverrideRule struct {
	// clusters that the rule is for: those that any of the selectors matches. Empty: all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Clusters []ClusterSelector `json:"clusters,omitempty"`

	// objects that the rule is for: those that any of the selectors matches. Empty: all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Objects []ObjectSelector `json:"objects,omitempty"`

	// jsonPatch changes the objects as RFC 6902 says. If one of its operations fails, the cluster gets none of the objects
	// until that is mended.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	JSONPatch []JSONPatchOperation `json:"jsonPatch,omitempty"`

	// mergePatch changes the objects as RFC 7386 says: what is null in it is removed, lists are replaced.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	MergePatch *runtime.RawExtension `json:"mergePatch,omitempty"`

	// delete keeps the objects from the clusters, or removes them from there. No later rule brings them back.
	// +optional
	Delete bool `json:"delete,omitempty"`
}

// ClusterSelector matches the clusters that all of what is set in it matches. It must not be empty.
//
// It is less than a [ClusterSelectorTerm], whose properties the API server could not check for so many rules: CEL knows
// properties as well.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) && size(self.names) > 0 || has(self.cel) && size(self.cel) > 0 || has(self.labelSelector) && (has(self.labelSelector.matchLabels) && size(self.labelSelector.matchLabels) > 0 || has(self.labelSelector.matchExpressions) && size(self.labelSelector.matchExpressions) > 0)",message="an empty selector matches every cluster: give it names, a labelSelector or cel, or remove it"
type ClusterSelector struct {
	// names of clusters, any of which will do.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Names []string `json:"names,omitempty"`

	// labelSelector matches the labels of a cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// cel lists expressions over the variable "cluster", as in a policy. All of them must be true.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	CEL []string `json:"cel,omitempty"`
}

// ObjectSelector matches the objects that all of what is set in it matches. It must not be empty.
//
// +kubebuilder:validation:MinProperties=1
type ObjectSelector struct {
	// group of the objects' API; "" is the core one. Unset: any.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group *string `json:"group,omitempty"`
	// kind of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the objects.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
}

// JSONPatchOp is what an operation of a JSON patch does.
//
// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
type JSONPatchOp string

// What an operation does.
const (
	JSONPatchAdd     JSONPatchOp = "add"     // sets a field, or inserts an item into a list; at the end with the index -
	JSONPatchRemove  JSONPatchOp = "remove"  // removes what is there
	JSONPatchReplace JSONPatchOp = "replace" // sets what is there already
	JSONPatchMove    JSONPatchOp = "move"    // removes what is at from, and adds it
	JSONPatchCopy    JSONPatchOp = "copy"    // adds what is at from
	JSONPatchTest    JSONPatchOp = "test"    // fails if anything else is there
)

// JSONPatchOperation is one step of a JSON patch.
//
// Nothing but test may name what an object is told by, apiVersion, kind, metadata.name and metadata.namespace, nor
// anything that a manifest cannot have: status, metadata.generateName and metadata.ownerReferences. To copy from there
// is fine.
//
// +kubebuilder:validation:XValidation:rule="self.op in ['move', 'copy'] == has(self.from)",fieldPath=".from",message="from is required with move and copy, and goes with no other op"
// +kubebuilder:validation:XValidation:rule="self.op == 'test' || size(self.path) > 0 && !(self.path in ['/metadata', '/apiVersion', '/kind', '/status', '/metadata/name', '/metadata/namespace', '/metadata/generateName', '/metadata/ownerReferences']) && !self.path.startsWith('/apiVersion/') && !self.path.startsWith('/kind/') && !self.path.startsWith('/status/') && !self.path.startsWith('/metadata/name/') && !self.path.startsWith('/metadata/namespace/') && !self.path.startsWith('/metadata/generateName/') && !self.path.startsWith('/metadata/ownerReferences/')",fieldPath=".path",reason=FieldValueForbidden,message="path must not be, contain or be within apiVersion, kind, status, or the name, namespace, generateName or ownerReferences of metadata"
// +kubebuilder:validation:XValidation:rule="self.op != 'move' || !has(self.from) || size(self.from) > 0 && !(self.from in ['/metadata', '/apiVersion', '/kind', '/status', '/metadata/name', '/metadata/namespace', '/metadata/generateName', '/metadata/ownerReferences']) && !self.from.startsWith('/apiVersion/') && !self.from.startsWith('/kind/') && !self.from.startsWith('/status/') && !self.from.startsWith('/metadata/name/') && !self.from.startsWith('/metadata/namespace/') && !self.from.startsWith('/metadata/generateName/') && !self.from.startsWith('/metadata/ownerReferences/')",fieldPath=".from",reason=FieldValueForbidden,message="from must not be, contain or be within apiVersion, kind, status, or the name, namespace, generateName or ownerReferences of metadata"
type JSONPatchOperation struct {
	// op is what is done.
	// +required
	Op JSONPatchOp `json:"op"`
	// path says where, as a JSON pointer (RFC 6901): /spec/template/spec/containers/0/image. In a name ~1 stands for / and
	// ~0 for ~. It has no variables.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)*$`
	Path string `json:"path"`
	// from says where move and copy take it from, as a JSON pointer.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)*$`
	// +optional
	From string `json:"from,omitempty"`
	// Value to add, to replace with or to find there: anything but null. It is required with add, replace and test, and
	// goes with no other op.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Value *runtime.RawExtension `json:"value,omitempty"`
}
