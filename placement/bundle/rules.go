package bundle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// kinds selects the objects that a row applies to. No kind: all objects; group "*": any group.
type kinds struct {
	group string
	kinds []string
}

func (k *kinds) matches(id workv1alpha1.ResourceIdentifier) bool {
	return k.kinds == nil || (k.group == "*" || k.group == id.Group) && slices.Contains(k.kinds, id.Kind)
}

// removal is a row of the table of fields that are removed.
type removal struct {
	kinds
	in     string   // the path of the map that contains the fields
	names  []string // the names of the fields
	reason string
	unless func(*unstructured.Unstructured) bool
}

const (
	annotations       = "metadata.annotations"
	podTemplateLabels = "spec.template.metadata.labels"
)

var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid",
	"batch.kubernetes.io/job-name"}

var removals = []removal{
	// All objects.
	{in: "", names: []string{"status"}, reason: "the controllers of the member write the status of the object on the " +
		"member"},
	{
		in:     "metadata",
		names:  []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"},
		reason: "the API server of the hub sets the fields for the object on the hub",
	},
	{
		in: "metadata", names: []string{"deletionTimestamp", "deletionGracePeriodSeconds"},
		reason: "the object on the hub is being deleted; the Work defines whether the object on the member is deleted as " +
			"well",
	},
	{in: "metadata", names: []string{"ownerReferences"},
		reason: "an owner is identified by its UID, which differs between clusters"},
	{in: "metadata", names: []string{"finalizers"},
		reason: "the controllers that remove the finalizers run on the hub, so the object on the member could not be " +
			"deleted"},
	{in: "metadata", names: []string{"generateName"},
		reason: "the object has a name already, and a Work rejects generated names"},
	{
		in: annotations, names: []string{corev1.LastAppliedConfigAnnotation},
		reason: "kubectl sets the annotation for the object on the hub; a copy doubles the size, and kubectl on the member " +
			"would use it",
	},
	{
		in: "metadata.labels", names: []string{workv1alpha1.AppliedLabel},
		reason: "a hub can be a member itself, and the label belongs to the agent on that cluster",
	},

	// By kind.
	{kinds{"", []string{"Namespace"}}, "spec", []string{"finalizers"}, "each API server sets its own finalizer", nil},
	{
		kinds{"", []string{"Service"}}, "spec", []string{"clusterIP", "clusterIPs"},
		"the addresses are from the range of the hub, and may be unavailable on the member; the value None is kept", headless,
	},
	{
		kinds{"", []string{"Service"}}, "spec", []string{"healthCheckNodePort"},
		"the port may be in use on the member", nil,
	},
	{
		kinds{"", []string{"Service"}}, "spec.ports.*", []string{"nodePort"},
		"the port may be in use on the member; a requested port is indistinguishable from an allocated one, so set it with " +
			"an override", nil,
	},
	{
		kinds{"batch", []string{"Job"}}, "spec.selector.matchLabels", jobLabels,
		"the API server derives the selector from the UID of the Job, and rejects other values", manualSelector,
	},
	{kinds{"batch", []string{"Job"}}, podTemplateLabels, jobLabels,
		"the labels are part of the selector that is derived from the UID", manualSelector},
	{kinds{"batch", []string{"Job"}}, "metadata.labels", jobLabels,
		"the API server adds the labels of the template to a Job without labels", manualSelector},
	{
		kinds{"", []string{"PersistentVolumeClaim"}}, "spec", []string{"volumeName"},
		"the controller of the hub chose the volume, which exists on the hub only; a volume that a user named is " +
			"kept", unboundByController,
	},
	{
		kinds{"", []string{"PersistentVolumeClaim", "PersistentVolume"}}, annotations,
		[]string{
			"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
			"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
		},
		"the annotations describe the binding on the hub: the controllers of the member would treat the claim as lost", nil,
	},
	{
		kinds{"", []string{"PersistentVolume"}}, "spec.claimRef", []string{"uid", "resourceVersion"},
		"the claim with this name has a different UID on the member, so the volume would be treated as released", nil,
	},
	{
		kinds{"", []string{"Pod"}}, "spec", []string{"nodeName"},
		"the scheduler of the hub chose the node, which exists on the hub only; use nodeSelector to select nodes", nil,
	},
	{kinds{"", []string{"Pod"}}, "spec", []string{"priority"},
		"the priority is derived from priorityClassName, and each cluster rejects other values", nil},
	{
		kinds{"apps", []string{"Deployment"}}, annotations, []string{"deployment.kubernetes.io/revision"},
		"the annotation counts the rollouts on the hub, and two controllers would overwrite each other's value", nil,
	},
	{
		kinds{"apps", []string{"DaemonSet"}}, annotations, []string{"deprecated.daemonset.template.generation"},
		"the annotation counts the rollouts on the hub, and two controllers would overwrite each other's value", nil,
	},
}

func headless(service *unstructured.Unstructured) bool {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	return ip == corev1.ClusterIPNone
}

func manualSelector(job *unstructured.Unstructured) bool {
	manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector")
	return manual
}

func unboundByController(claim *unstructured.Unstructured) bool {
	return claim.GetAnnotations()["pv.kubernetes.io/bound-by-controller"] == ""
}

// refusal is a row of the table of objects that are refused.
type refusal struct {
	kinds
	which  string // a description of the objects of these kinds
	when   func(*unstructured.Unstructured) bool
	reason string
}

const reasonPerCluster = "every cluster has its own"

var refusals = []refusal{
	{kinds{}, "lists", isList, "a list is not an object; select its items instead"},
	{kinds{}, "objects of muster.dev and the groups below it", ofMuster, "objects of muster belong to the hub"},
	{kinds{"", []string{"Secret"}}, "of type kubernetes.io/service-account-token",
		ofType(corev1.SecretTypeServiceAccountToken), "the token gives access to the hub only"},
	{kinds{"", []string{"Secret"}}, "of type bootstrap.kubernetes.io/token", ofType("bootstrap.kubernetes.io/token"),
		"the token lets clusters or nodes join the hub"},
	{kinds{"*", []string{"Event"}}, "of the core group and events.k8s.io", inGroup("", "events.k8s.io"),
		"the Event describes an object on the hub"},
	{kinds{"coordination.k8s.io", []string{"Lease", "LeaseCandidate"}}, "", nil,
		"a component on the hub renews the object, and a copy would prevent components on the member from acquiring it"},
	{kinds{"", []string{"Endpoints"}}, "of the endpoints controller or an election", madeEndpoints,
		"the member generates the object from its own Pods"},
	{kinds{"discovery.k8s.io", []string{"EndpointSlice"}}, "of a controller of *.k8s.io", madeSlice,
		"the member generates the object from its own Pods"},
	{kinds{"", []string{"Pod", "ReplicationController"}}, "with a controller", controlled,
		"the owner creates the object on every cluster that has the owner"},
	{kinds{"apps", []string{"ReplicaSet", "ControllerRevision"}}, "with a controller", controlled,
		"the owner creates the object on every cluster that has the owner"},
	{kinds{"batch", []string{"Job"}}, "with a controller", controlled,
		"the owner creates the object on every cluster that has the owner"},
	{kinds{"", []string{"Node", "ComponentStatus"}}, "", nil, reasonPerCluster},
	{kinds{"storage.k8s.io", []string{"CSINode", "CSIStorageCapacity", "VolumeAttachment"}}, "", nil, reasonPerCluster},
	{kinds{"certificates.k8s.io", []string{"CertificateSigningRequest"}}, "", nil, "the request is for a certificate of " +
		"the hub"},
	{kinds{"metrics.k8s.io", []string{"NodeMetrics", "PodMetrics"}}, "", nil, "the metrics are those of the hub"},
	{kinds{"", []string{"Namespace"}}, "default, kube-system, kube-public and kube-node-lease",
		named("default", "kube-system", "kube-public", "kube-node-lease"), reasonPerCluster},
	{kinds{"", []string{"ServiceAccount"}}, "default", named("default"), "every namespace has its own"},
	{kinds{"", []string{"ConfigMap"}}, "kube-root-ca.crt and openshift-service-ca.crt",
		named("kube-root-ca.crt", "openshift-service-ca.crt"), "every namespace has its own, with its cluster's CA"},
}

func isList(object *unstructured.Unstructured) bool {
	return object.IsList() && strings.HasSuffix(object.GetKind(), "List")
}

func ofMuster(object *unstructured.Unstructured) bool {
	group := object.GroupVersionKind().Group
	return group == "muster.dev" || strings.HasSuffix(group, ".muster.dev")
}

func ofType(kind corev1.SecretType) func(*unstructured.Unstructured) bool {
	return func(secret *unstructured.Unstructured) bool { return secret.Object["type"] == string(kind) }
}

func inGroup(groups ...string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return slices.Contains(groups, object.GroupVersionKind().Group)
	}
}

func named(names ...string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool { return slices.Contains(names, object.GetName()) }
}

func controlled(object *unstructured.Unstructured) bool {
	return metav1.GetControllerOfNoCopy(object) != nil
}

// madeEndpoints reports whether the endpoints controller made the object, or an election is held with it. Otherwise a
// user wrote it for a Service without a selector.
func madeEndpoints(endpoints *unstructured.Unstructured) bool {
	labels, notes := endpoints.GetLabels(), endpoints.GetAnnotations()
	return labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" ||
		notes["endpoints.kubernetes.io/last-change-trigger-time"] != "" ||
		notes["control-plane.alpha.kubernetes.io/leader"] != ""
}

func madeSlice(slice *unstructured.Unstructured) bool {
	return strings.HasSuffix(slice.GetLabels()["endpointslice.kubernetes.io/managed-by"], ".k8s.io")
}
