package v1alpha1

// ExplainAnnotation on a Placement requests an explanation of its decision in status.explanation, each time its value
// changes. When the annotation is removed, so is the explanation. A value has at most 253 characters; longer ones are
// ignored.
const ExplainAnnotation = GroupName + "/explain"

// Explanation explains the decision about a Placement, as the plugins and the profile of the hub made it.
type Explanation struct {
	// request is the value of the annotation placement.muster.dev/explain that requested the explanation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Request string `json:"request"`

	// message is the explanation in one sentence. It counts the reasons of all clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// clusters are the chosen clusters, then those that could be chosen, each group the best first, then those that
	// cannot, by name; at most 100.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Clusters []ClusterExplanation `json:"clusters,omitempty"`

	// omitted is the number of further clusters.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// ClusterExplanation explains what a decision made of one cluster.
type ClusterExplanation struct {
	// name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// result is Chosen, Feasible (the cluster could be chosen, and others were) or Rejected.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Result string `json:"result"`

	// plugin is the plugin that rejected the cluster. Empty: none did.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Plugin string `json:"plugin,omitempty"`

	// reason is the reason of the plugin.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// score is the weighted sum of the scores of the plugins, with one decimal place. Empty for a rejected cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Score string `json:"score,omitempty"`
}
