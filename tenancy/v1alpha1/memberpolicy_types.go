package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemberPolicySpec contains the rules of a MemberPolicy.
type MemberPolicySpec struct {
	// Rules define the objects that the member accepts. The agent applies an object if at least one rule of any
	// MemberPolicy accepts it. A policy without rules accepts no object.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Rules []MemberPolicyRule `json:"rules,omitempty"`
}

// MemberPolicyRule accepts the objects that match all of its fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.namespaces) && size(self.namespaces) > 0) || (has(self.clusterScoped) && self.clusterScoped)",message="namespaces or clusterScoped must be set, because the rule accepts no object otherwise"
type MemberPolicyRule struct {
	// Hubs are the names that the agent gives to its hubs. An agent without names calls its only hub "hub". If the list is
	// empty, the rule applies to every hub.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Hubs []string `json:"hubs,omitempty"`

	// Kinds are the kinds of the objects.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +required
	Kinds []ObjectKind `json:"kinds"`

	// Namespaces are the namespaces of the objects. An entry that ends with "*" applies to every namespace with this
	// prefix, and "*" to every namespace. A Namespace object is treated as if it were in the namespace with its name: a
	// rule with the namespace "shop" and the kind Namespace accepts the Namespace "shop". Empty: the rule accepts only
	// cluster-scoped objects, and requires clusterScoped.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|([a-z0-9][-a-z0-9]*)?\*)$`
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// ClusterScoped extends the rule to cluster-scoped objects of its kinds. If Namespace is one of the kinds, this
	// includes every Namespace. Default: false.
	// +optional
	ClusterScoped bool `json:"clusterScoped,omitempty"`

	// ServiceAccounts are the values of spec.executor to which the rule applies. If the list is not empty, the rule does
	// not apply to Works without an executor. If the list is empty, the rule applies to every Work.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ServiceAccounts []ServiceAccount `json:"serviceAccounts,omitempty"`

	// Addons are the names of add-ons, or "*" for every add-on. If the list is not empty, the rule applies only to the
	// Works of these add-ons. If the list is empty, the rule applies only to Works that belong to no add-on. The hub
	// defines to which add-on a Work belongs.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Addons []string `json:"addons,omitempty"`
}

// MemberPolicy limits the objects that the agent applies and reads for its hubs. It is an object on a member cluster,
// and the administrator of the member owns it. A member without MemberPolicies accepts every object that the
// permissions of the agent allow. A member with at least one MemberPolicy accepts only objects that a rule accepts.
//
// A change takes effect immediately. If an object was applied before and is not accepted any more, the agent neither
// changes nor reads it, but still deletes it with its Work. The agent never applies a MemberPolicy for a hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mpol,categories=muster
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.rules[*].namespaces`
// +kubebuilder:printcolumn:name="Hubs",type=string,JSONPath=`.spec.rules[*].hubs`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MemberPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MemberPolicySpec `json:"spec"`
}

// MemberPolicyList is a list of MemberPolicies.
//
// +kubebuilder:object:root=true
type MemberPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberPolicy `json:"items"`
}
