package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkSetRevisionSpec contains one part of the objects that a WorkSet distributes, or distributed, to clusters. It is
// immutable.
type WorkSetRevisionSpec struct {
	// workSet is the name of the WorkSet that the revision belongs to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	WorkSet string `json:"workSet"`

	// revision is the name of the revision, as in status.revisions of the WorkSet. The WorkSetRevision has the same name,
	// followed by the number of the part if the revision has several parts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// hash is the hash of the complete content of the revision, as 64 hexadecimal digits.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Hash string `json:"hash"`

	// part is the number of this part and the total number of parts of the revision, such as 1/3.
	// +required
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,3}/[1-9][0-9]{0,3}$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,4}/[0-9]{1,4}$') || int(self.split('/')[0]) <= int(self.split('/')[1])",message="part must be an existing part, such as 1/3"
	Part string `json:"part"`

	// objects is the number of objects in all parts of the revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects"`

	// The schema must not declare Content as an object. In a rule, the API server considers two objects equal if they
	// differ only in unknown fields and have the same number of them, so a field could be renamed in spite of self ==
	// oldSelf. A value without a type is compared as a whole.

	// content is the content of this part of the revision, in a format that package placement/internal/revision defines.
	// It can contain Secrets.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Content runtime.RawExtension `json:"content"`
}

// WorkSetRevision stores a revision of a WorkSet, or one part of a revision that is too large for one object. The
// WorkSet is its owner, and the WorkSet controller creates and deletes it. The permission to read a WorkSetRevision is
// the permission to read all objects in it, including Secrets.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=wsr,categories=muster
// +kubebuilder:printcolumn:name="WorkSet",type=string,JSONPath=`.spec.workSet`
// +kubebuilder:printcolumn:name="Number",type=integer,JSONPath=`.number`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.spec.objects`
// +kubebuilder:printcolumn:name="Part",type=string,JSONPath=`.spec.part`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkSetRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// number increases with each change of the WorkSet. A revision that becomes the current one again gets a new number.
	// If a revision has several parts, the highest number of its parts applies.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`

	// spec is the desired state of the WorkSetRevision.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a revision cannot be changed: delete it, and its WorkSet creates another one if necessary"
	// +required
	Spec WorkSetRevisionSpec `json:"spec"`
}

// WorkSetRevisionList is a list of WorkSetRevisions.
//
// +kubebuilder:object:root=true
type WorkSetRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkSetRevision `json:"items"`
}
