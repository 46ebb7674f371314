package agent

// The permissions of an agent on its member, from which the files in the folder rbac are generated. If agent and member
// are separate, the first group is for the member and the second for the agent's cluster.

// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=list
// +kubebuilder:rbac:groups=about.k8s.io,resources=clusterproperties,verbs=list
// +kubebuilder:rbac:urls=/version;/readyz;/livez;/healthz,verbs=get

// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,resourceNames=muster-agent,verbs=get;update;delete
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,resourceNames=muster-bootstrap,verbs=get;delete
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,resourceNames=muster-bootstrap,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,namespace=muster-system,resources=events,verbs=create;patch
