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
	{in: "", names: []string{"status"}, reason: "the member's controllers report on the member's object"},
	{
		in:     "metadata",
		names:  []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"},
		reason: "the hub's API server wrote it about the hub's object",
	},
	{
		in: "metadata", names: []string{"deletionTimestamp", "deletionGracePeriodSeconds"},
		reason: "what is being deleted is the hub's object; whether the member's goes, too, is for the Work to say",
	},
	{in: "metadata", names: []string{"ownerReferences"},
		reason: "an owner is found by its UID, which is another one on each cluster"},
	{in: "metadata", names: []string{"finalizers"},
		reason: "who takes them off runs on the hub: the member's object could never be deleted"},
	{in: "metadata", names: []string{"generateName"},
		reason: "the object has its name by now, and a Work refuses to make up others"},
	{
		in: annotations, names: []string{corev1.LastAppliedConfigAnnotation},
		reason: "kubectl wrote it about the hub's object, it doubles the size, and kubectl on the member would compare " +
			"with it",
	},
	{
		in: "metadata.labels", names: []string{workv1alpha1.AppliedLabel},
		reason: "a hub may be a member itself: the label is for the agent there",
	},

	// By kind.
	{kinds{"", []string{"Namespace"}}, "spec", []string{"finalizers"}, "each API server writes its own", nil},
	{
		kinds{"", []string{"Service"}}, "spec", []string{"clusterIP", "clusterIPs"},
		"they are from the hub's range, and out of the member's or in use there; None is a wish, and stays", headless,
	},
	{
		kinds{"", []string{"Service"}}, "spec", []string{"healthCheckNodePort"},
		"it was free on the hub, and may not be on the member", nil,
	},
	{
		kinds{"", []string{"Service"}}, "spec.ports.*", []string{"nodePort"},
		"it was free on the hub, and may not be on the member; what was wished for looks the same, and is for an " +
			"override", nil,
	},
	{
		kinds{"batch", []string{"Job"}}, "spec.selector.matchLabels", jobLabels,
		"the API server makes it of the Job's UID, and refuses any other", manualSelector,
	},
	{kinds{"batch", []string{"Job"}}, podTemplateLabels, jobLabels,
		"they are part of the selector that is made of the UID", manualSelector},
	{kinds{"batch", []string{"Job"}}, "metadata.labels", jobLabels,
		"the API server adds the template's labels where a Job has none", manualSelector},
	{
		kinds{"", []string{"PersistentVolumeClaim"}}, "spec", []string{"volumeName"},
		"the hub's controller chose the volume, which is on the hub; a volume that the user named stays", unboundByController,
	},
	{
		kinds{"", []string{"PersistentVolumeClaim", "PersistentVolume"}}, annotations,
		[]string{
			"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
			"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
		},
		"the hub's controllers wrote how they bound it: the member's would take the claim for lost", nil,
	},
	{
		kinds{"", []string{"PersistentVolume"}}, "spec.claimRef", []string{"uid", "resourceVersion"},
		"the claim of that name has another UID on the member, and the volume would count as released", nil,
	},
	{
		kinds{"", []string{"Pod"}}, "spec", []string{"nodeName"},
		"the hub's scheduler chose the node, which is on the hub; to wish for one there is nodeSelector", nil,
	},
	{kinds{"", []string{"Pod"}}, "spec", []string{"priority"},
		"it is looked up by priorityClassName, and each cluster refuses any other value", nil},
	{
		kinds{"apps", []string{"Deployment"}}, annotations, []string{"deployment.kubernetes.io/revision"},
		"it counts the hub's rollouts, and two controllers would correct it in turns", nil,
	},
	{
		kinds{"apps", []string{"DaemonSet"}}, annotations, []string{"deprecated.daemonset.template.generation"},
		"it counts the hub's rollouts, and two controllers would correct it in turns", nil,
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

const eachItsOwn = "every cluster has its own"

var refusals = []refusal{
	{kinds{}, "lists", isList, "a list is no object, and its items may travel"},
	{kinds{}, "objects of muster.dev and the groups below it", ofMuster, "they are what the hub works with"},
	{kinds{"", []string{"Secret"}}, "of type kubernetes.io/service-account-token",
		ofType(corev1.SecretTypeServiceAccountToken), "a token of the hub gives access to the hub, and to nothing else"},
	{kinds{"", []string{"Secret"}}, "of type bootstrap.kubernetes.io/token", ofType("bootstrap.kubernetes.io/token"),
		"it lets clusters or nodes join the hub"},
	{kinds{"*", []string{"Event"}}, "of the core group and events.k8s.io", inGroup("", "events.k8s.io"),
		"it tells what happened on the hub"},
	{kinds{"coordination.k8s.io", []string{"Lease", "LeaseCandidate"}}, "", nil,
		"it is renewed by who runs on the hub, and would keep others from it"},
	{kinds{"", []string{"Endpoints"}}, "of the endpoints controller or an election", madeEndpoints,
		"the member makes it of its own pods"},
	{kinds{"discovery.k8s.io", []string{"EndpointSlice"}}, "of a controller of *.k8s.io", madeSlice,
		"the member makes it of its own pods"},
	{kinds{"", []string{"Pod", "ReplicationController"}}, "with a controller", controlled,
		"its controller makes it where the controller's object is"},
	{kinds{"apps", []string{"ReplicaSet", "ControllerRevision"}}, "with a controller", controlled,
		"its controller makes it where the controller's object is"},
	{kinds{"batch", []string{"Job"}}, "with a controller", controlled,
		"its controller makes it where the controller's object is"},
	{kinds{"", []string{"Node", "ComponentStatus"}}, "", nil, eachItsOwn},
	{kinds{"storage.k8s.io", []string{"CSINode", "CSIStorageCapacity", "VolumeAttachment"}}, "", nil, eachItsOwn},
	{kinds{"certificates.k8s.io", []string{"CertificateSigningRequest"}}, "", nil, "it asks the hub for a certificate"},
	{kinds{"metrics.k8s.io", []string{"NodeMetrics", "PodMetrics"}}, "", nil, "it was measured on the hub"},
	{kinds{"", []string{"Namespace"}}, "default, kube-system, kube-public and kube-node-lease",
		named("default", "kube-system", "kube-public", "kube-node-lease"), eachItsOwn},
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
