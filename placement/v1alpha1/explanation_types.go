package v1alpha1

// ExplainAnnotation on a Placement requests an explanation of its decision in status.explanation, each time its value
// changes. The explanation is removed with the annotation. The maximum length of the value is 253 bytes; a longer value
// is ignored.
const ExplainAnnotation = GroupName + "/explain"

// Explanation explains the decision for a Placement. It reflects the plugins and the scheduler profile of the hub.
type Explanation struct {
	// request is the value of the annotation placement.muster.dev/explain that requested the explanation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Request string `json:"request"`

	// message is the explanation in one sentence. It contains the number of clusters for each reason.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// clusters are the results of at most 100 clusters: first the selected clusters and then the other feasible clusters,
	// both in the order of their scores, and then the rejected clusters in the order of their names.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Clusters []ClusterExplanation `json:"clusters,omitempty"`

	// omitted is the number of clusters that are not listed in clusters.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// ClusterExplanation explains the result of a decision for one cluster.
type ClusterExplanation struct {
	// name is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// result is Chosen, Feasible (the cluster is eligible, but was not selected) or Rejected.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Result string `json:"result"`

	// plugin is the plugin that rejected the cluster, or that excluded a feasible cluster. Empty: no plugin did.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Plugin string `json:"plugin,omitempty"`

	// reason is the reason that the plugin reported.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// score is the weighted sum of the scores of the plugins, with one decimal place. Empty for a rejected cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Score string `json:"score,omitempty"`
}
