package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits of Overrides. Overrides are part of a stored object, and are applied for every cluster.
const (
	// MaxOverrideRules is the maximum number of rules.
	MaxOverrideRules = 64
	// MaxPatchOperations is the maximum number of operations of a JSON patch.
	MaxPatchOperations = 64
	// MaxOverrideBytes is the maximum total size of all rules as JSON.
	MaxOverrideBytes = 256 << 10
	// MaxPatchDepth is the maximum depth of nested maps and lists in a patch.
	MaxPatchDepth = 64
)

// Overrides change the objects for some clusters. The zero value changes nothing.
//
// Strings in patches, and in manifests if expandManifests is true, may contain variables of the cluster:
//
//	${muster.cluster.name}
//	${muster.cluster.labels["topology.kubernetes.io/region"]}
//	${muster.cluster.properties["example.com/cost"]:-unknown}
//
// Package placement/override describes their syntax.
type Overrides struct {
	// rules are applied to each object in their order. A later rule overrides an earlier one.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Rules []OverrideRule `json:"rules,omitempty"`

	// expandManifests replaces variables in the strings of the manifests, before any rule is applied. Field names,
	// apiVersion, kind, metadata.name and metadata.namespace cannot contain variables.
	// +optional
	ExpandManifests bool `json:"expandManifests,omitempty"`
}

// OverrideRule changes some objects on some clusters. If a rule has both patches, the JSON patch is applied first.
//
// +kubebuilder:validation:XValidation:rule="has(self.jsonPatch) && size(self.jsonPatch) > 0 || has(self.mergePatch) || has(self.delete) && self.delete",message="a rule requires jsonPatch, mergePatch or delete"
// +kubebuilder:validation:XValidation:rule="!has(self.delete) || !self.delete || !(has(self.jsonPatch) && size(self.jsonPatch) > 0 || has(self.mergePatch))",fieldPath=".delete",reason=FieldValueForbidden,message="patches must not be set with delete: remove the patches, or delete"
// +kubebuilder:validation:XValidation:rule="!has(self.delete) || !self.delete || has(self.objects) && size(self.objects) > 0",fieldPath=".objects",reason=FieldValueRequired,message="objects is required with delete: select the objects to delete, because an empty selector does not select all objects"
type OverrideRule struct {
	// clusters select the clusters that the rule applies to: those that match any of the selectors. Empty: all clusters.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Clusters []ClusterSelector `json:"clusters,omitempty"`

	// objects select the objects that the rule applies to: those that match any of the selectors. Empty: all objects.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Objects []ObjectSelector `json:"objects,omitempty"`

	// jsonPatch is a JSON patch (RFC 6902). If one of its operations fails, none of the objects is delivered to the
	// cluster until the rule or the objects are corrected.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	JSONPatch []JSONPatchOperation `json:"jsonPatch,omitempty"`

	// mergePatch is a JSON merge patch (RFC 7386): null removes a field, and lists are replaced.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	MergePatch *runtime.RawExtension `json:"mergePatch,omitempty"`

	// delete removes the objects from the clusters. Later rules do not restore them.
	// +optional
	Delete bool `json:"delete,omitempty"`
}

// ClusterSelector matches the clusters that match each of its fields that is set. It must not be empty.
//
// Unlike a [ClusterSelectorTerm], it has no properties, because the API server could not validate them for so many
// rules. CEL expressions can use properties.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) && size(self.names) > 0 || has(self.cel) && size(self.cel) > 0 || has(self.labelSelector) && (has(self.labelSelector.matchLabels) && size(self.labelSelector.matchLabels) > 0 || has(self.labelSelector.matchExpressions) && size(self.labelSelector.matchExpressions) > 0)",message="an empty selector matches every cluster: give it names, a labelSelector or cel, or remove it"
type ClusterSelector struct {
	// names are the names of clusters. A cluster matches if its name is one of them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Names []string `json:"names,omitempty"`

	// labelSelector matches the labels of a cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// cel lists CEL expressions over the variable "cluster", as in a placement policy. All of them must be true.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	CEL []string `json:"cel,omitempty"`
}

// ObjectSelector matches the objects that match each of its fields that is set. It must not be empty.
//
// +kubebuilder:validation:MinProperties=1
type ObjectSelector struct {
	// group is the API group of the objects; "" is the core group. Unset: any group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group *string `json:"group,omitempty"`
	// kind is the kind of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace is the namespace of the objects.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
}

// JSONPatchOp is the type of a JSON patch operation.
//
// +kubebuilder:validation:Enum=add;remove;replace;move;copy;test
type JSONPatchOp string

// JSON patch operations.
const (
	JSONPatchAdd     JSONPatchOp = "add"     // sets a field, or inserts an item into a list; the index "-" appends it
	JSONPatchRemove  JSONPatchOp = "remove"  // removes the value at path
	JSONPatchReplace JSONPatchOp = "replace" // replaces the existing value at path
	JSONPatchMove    JSONPatchOp = "move"    // removes the value at from, and adds it at path
	JSONPatchCopy    JSONPatchOp = "copy"    // adds the value at from at path
	JSONPatchTest    JSONPatchOp = "test"    // fails if the value at path is different
)

// JSONPatchOperation is one operation of a JSON patch (RFC 6902).
//
// Only a test may use the paths apiVersion, kind, metadata.name and metadata.namespace, and the fields that a manifest
// cannot have: status, metadata.generateName and metadata.ownerReferences. A copy may read from these paths.
//
// +kubebuilder:validation:XValidation:rule="self.op in ['move', 'copy'] == has(self.from)",fieldPath=".from",message="from is required with move and copy, and must not be set with another op"
// +kubebuilder:validation:XValidation:rule="self.op == 'test' || size(self.path) > 0 && !(self.path in ['/metadata', '/apiVersion', '/kind', '/status', '/metadata/name', '/metadata/namespace', '/metadata/generateName', '/metadata/ownerReferences']) && !self.path.startsWith('/apiVersion/') && !self.path.startsWith('/kind/') && !self.path.startsWith('/status/') && !self.path.startsWith('/metadata/name/') && !self.path.startsWith('/metadata/namespace/') && !self.path.startsWith('/metadata/generateName/') && !self.path.startsWith('/metadata/ownerReferences/')",fieldPath=".path",reason=FieldValueForbidden,message="path must not be, contain or be within apiVersion, kind, status, or the name, namespace, generateName or ownerReferences of metadata"
// +kubebuilder:validation:XValidation:rule="self.op != 'move' || !has(self.from) || size(self.from) > 0 && !(self.from in ['/metadata', '/apiVersion', '/kind', '/status', '/metadata/name', '/metadata/namespace', '/metadata/generateName', '/metadata/ownerReferences']) && !self.from.startsWith('/apiVersion/') && !self.from.startsWith('/kind/') && !self.from.startsWith('/status/') && !self.from.startsWith('/metadata/name/') && !self.from.startsWith('/metadata/namespace/') && !self.from.startsWith('/metadata/generateName/') && !self.from.startsWith('/metadata/ownerReferences/')",fieldPath=".from",reason=FieldValueForbidden,message="from must not be, contain or be within apiVersion, kind, status, or the name, namespace, generateName or ownerReferences of metadata"
type JSONPatchOperation struct {
	// op is the operation.
	// +required
	Op JSONPatchOp `json:"op"`
	// path is the target as a JSON pointer (RFC 6901), such as /spec/template/spec/containers/0/image. In a name, ~1
	// represents / and ~0 represents ~. Variables in the path are not replaced.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)*$`
	Path string `json:"path"`
	// from is the source of move and copy, as a JSON pointer.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)*$`
	// +optional
	From string `json:"from,omitempty"`
	// value is the value to add, to replace with, or to compare with. It must not be null. It is required with add,
	// replace and test, and forbidden with the other operations.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Value *runtime.RawExtension `json:"value,omitempty"`
}
