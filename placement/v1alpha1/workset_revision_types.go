package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkSetRevisionSpec is one part of what a WorkSet is, or was, to bring to clusters. It never changes.
type WorkSetRevisionSpec struct {
	// workSet is the name of the WorkSet that this is a revision of.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	WorkSet string `json:"workSet"`

	// revision is the name of the revision, as in status.revisions of the WorkSet. This object has that name, too, and the
	// number of the part after it if there are several.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// hash is that of all the content of the revision, in 64 hexadecimal digits.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Hash string `json:"hash"`

	// part says which part of the revision this is, and how many there are, as in 1/3.
	// +required
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,3}/[1-9][0-9]{0,3}$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]{1,4}/[0-9]{1,4}$') || int(self.split('/')[0]) <= int(self.split('/')[1])",message="part must be one of those that there are, as in 1/3"
	Part string `json:"part"`

	// objects is how many the revision has in all its parts.
	// +required
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects"`

	// The API server must not know Content for an object: its rules take two objects for equal of which one has other
	// unknown fields, if they are as many, so that a field could be renamed. What has no type is compared as a whole.

	// Content is what this part has of the revision, in a format that package placement/internal/revision knows. There may
	// be Secrets in it.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Content runtime.RawExtension `json:"content"`
}

// WorkSetRevision is a revision of a WorkSet, which owns it, or a part of one that is too long for one object. The
// controller of WorkSets makes and deletes them. Who may read it can read all objects of that revision.
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

	// number counts up with each change of the WorkSet. A revision that comes again gets a new one. Of several parts, the
	// highest number counts.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`

	// spec is the desired state of the WorkSetRevision.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a revision never changes: delete it, and its WorkSet makes another where it is needed"
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
