package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAffinity defines which clusters are eligible, and which of them are preferred.
type ClusterAffinity struct {
	// required lists the terms that make a cluster eligible. A cluster must match at least one term. Empty: all clusters
	// are eligible.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Required []ClusterSelectorTerm `json:"required,omitempty"`

	// preferred changes the score of the clusters that match a term. A cluster gets the sum of the weights of all terms
	// that it matches; a negative weight reduces the score.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Preferred []PreferredTerm `json:"preferred,omitempty"`
}

// ClusterSelectorTerm matches the clusters that match each of its fields that is set. It must not be empty.
//
// +kubebuilder:validation:XValidation:rule="(has(self.labelSelector) && (has(self.labelSelector.matchLabels) && size(self.labelSelector.matchLabels) > 0 || has(self.labelSelector.matchExpressions) && size(self.labelSelector.matchExpressions) > 0)) || (has(self.properties) && size(self.properties) > 0) || (has(self.cel) && size(self.cel) > 0)",message="an empty term matches every cluster: give it a labelSelector, properties or cel, or remove it"
type ClusterSelectorTerm struct {
	// labelSelector matches the labels of a cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// properties are requirements for the properties of a cluster. All of them must match.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Properties []PropertyRequirement `json:"properties,omitempty"`

	// cel lists CEL expressions over the variable "cluster". All of them must be true.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:XValidation:rule="size(self) > 0",message="an expression must not be empty: write an expression on the variable cluster, or remove it"
	// +optional
	CEL []string `json:"cel,omitempty"`
}

// PreferredTerm is a term with a weight.
type PreferredTerm struct {
	// weight is added to the score of a cluster that matches the term. It must be from -100 to 100, and not 0.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= -100 && self <= 100 && self != 0",message="weight must be from -100 to 100 and not 0; remove a term that must not count"
	Weight int32 `json:"weight"`

	// term selects the clusters that get the weight.
	// +required
	Term ClusterSelectorTerm `json:"term"`
}

// PropertyOperator defines how a property of a cluster is compared with the values of a [PropertyRequirement].
//
// +kubebuilder:validation:Enum=Gt;Ge;Eq;Ne;Lt;Le;In;NotIn;Exists;DoesNotExist
type PropertyOperator string

// Property operators. A cluster without the property matches Ne, NotIn and DoesNotExist, as with label selectors. If
// the value of the property does not have the type that is compared, the cluster matches Exists only.
const (
	PropertyGt           PropertyOperator = "Gt"           // greater than the one value
	PropertyGe           PropertyOperator = "Ge"           // greater than the one value, or equal
	PropertyEq           PropertyOperator = "Eq"           // equal to the one value
	PropertyNe           PropertyOperator = "Ne"           // not equal to the one value
	PropertyLt           PropertyOperator = "Lt"           // less than the one value
	PropertyLe           PropertyOperator = "Le"           // less than the one value, or equal
	PropertyIn           PropertyOperator = "In"           // equal to any of the values
	PropertyNotIn        PropertyOperator = "NotIn"        // equal to none of the values
	PropertyExists       PropertyOperator = "Exists"       // the cluster has the property, with any value
	PropertyDoesNotExist PropertyOperator = "DoesNotExist" // the cluster does not have the property
)

// PropertyType is the type of the value of a property.
//
// +kubebuilder:validation:Enum=Quantity;Version;String
type PropertyType string

const (
	// PropertyQuantity is a Kubernetes quantity, such as 500m, 1.5 or 64Gi. See [ParseQuantity].
	PropertyQuantity PropertyType = "Quantity"
	// PropertyVersion is a semantic version of three numbers, such as v1.31.2 or 1.31.2-rc.1. See [ParseVersion].
	PropertyVersion PropertyType = "Version"
	// PropertyString is text. It can be compared for equality, but has no order.
	PropertyString PropertyType = "String"
)

// PropertyRequirement is a requirement for a property of a cluster.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Ge', 'Eq', 'Ne', 'Lt', 'Le']) || (has(self.values) && size(self.values) == 1)",fieldPath=".values",message="values must have exactly one entry with the operators Gt, Ge, Eq, Ne, Lt and Le; use In or NotIn for several"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",fieldPath=".values",message="values must have at least one entry with the operators In and NotIn; use Exists or DoesNotExist if the value does not matter"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",fieldPath=".values",message="values must be empty with the operators Exists and DoesNotExist; use In or NotIn to compare values"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Ge', 'Lt', 'Le']) || !has(self.type) || self.type != 'String'",fieldPath=".operator",message="operator must not be Gt, Ge, Lt or Le with type String, which has no order; use Eq, Ne, In or NotIn, or type Quantity or Version"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Ge', 'Lt', 'Le']) || has(self.type) || !has(self.values) || size(self.values) != 1 || self.values[0].matches('^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$') || self.values[0].matches('^v?(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}([-+].*)?$')",fieldPath=".values",message="values must be a quantity such as 64Gi or a semantic version such as v1.31.2 with the operators Gt, Ge, Lt and Le; use Eq, Ne, In or NotIn for strings"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Quantity' || !has(self.values) || size(self.values) == 0 || self.values[0].matches('^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$')",fieldPath=".values",message="values must be quantities such as 500m, 1.5 or 64Gi with type Quantity, and an exponent have at most two digits; leave type out to detect it"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Version' || !has(self.values) || size(self.values) == 0 || self.values[0].matches('^v?(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}([-+].*)?$')",fieldPath=".values",message="values must be semantic versions of three numbers such as v1.31.2 with type Version; leave type out to detect it"
type PropertyRequirement struct {
	// name is the name of the property.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="name must be the name of a property"
	Name string `json:"name"`

	// operator defines how the property is compared with the values.
	// +required
	Operator PropertyOperator `json:"operator"`

	// values are the values to compare with: exactly one with Gt, Ge, Eq, Ne, Lt and Le, at least one with In and NotIn,
	// and none with Exists and DoesNotExist.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	Values []string `json:"values,omitempty"`

	// type is the type that the values and the property are compared as. Empty: Quantity if all values are quantities,
	// Version if all values are semantic versions such as v1.31.2, and String otherwise. The value 1.30 is a quantity and
	// is equal to 1.3: write v1.30.0 to compare versions, or set the type to String to compare text.
	// +optional
	Type PropertyType `json:"type,omitempty"`
}
