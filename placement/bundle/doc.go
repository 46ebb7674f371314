// Package bundle divides objects among Works. The package is pure: it uses no client and no clock.
//
// [Clean] removes from an object of the hub the fields that belong to the hub, or refuses an object that no member
// should get. [Parse] parses a manifest. Both return an [Object]. [Pack] divides objects among Works, and [Arrange]
// returns the steps from the existing Works of a member to the desired ones.
//
// # Works
//
// The size of a Work is limited, so many objects need several Works. Each move of an object makes one Work give it up
// and another one take it over. Pack therefore starts from the existing distribution:
//
//   - An object stays in its Work while there is room for it.
//   - If objects have grown over the limit, Pack moves changed objects, and never an unchanged one.
//   - A new object goes into the first Work with room for it, or else into a new Work. It leaves an eighth of each Work
//     free for the growth of other objects.
//   - A Work without objects is deleted. Works are never merged.
//
// Adding, removing or changing an object therefore changes one Work, or two if the object has outgrown its Work. The
// hash of every other Work stays the same.
//
// # Steps
//
// An object that moves is in two Works for a while. If its old Work gave it up before the member had applied the new
// one, the member would delete the object and create it again. [Arrange] therefore orders the steps:
//
//   - A Work that gives up an object, or is deleted, waits until each Work that gains one of its objects exists,
//     contains the object, and is processed by the member.
//   - If the desired state changes during a move, an object can be in three Works. The first of the Works that give it
//     up keeps it until it has arrived. The other ones give it up as soon as the first one contains it.
//   - Works do not wait for each other in a circle: an object that leaves a Work is larger than the free space there,
//     so it moves to a Work with less content.
//   - A Work whose name belongs to a Work that is being deleted waits until that Work is gone.
//   - All other Works are written at once. A Work that is up to date is not written.
//
// [Existing] describes an existing Work. Besides its objects, two things decide whether a Work is up to date: the hash
// of its options, which are the same for all Works of a member, and its marks, the labels and annotations that identify
// the owner. What changes more often, such as the revision and its time, is a note on the first Work only, so that a
// revision with the same objects costs one small write. The note is written together with the content. If the first
// Work must wait, the note is written without the content. A note therefore shows what was assigned to the member, and
// an empty list of steps shows that everything has been written.
//
// Arrange is stateless. Any process can call it with the existing Works after each change, and it leads from every
// state to the desired one. Its input must not be older than the last write of the caller; with a stale cache, the
// write would be repeated.
//
// # Order
//
// A Work applies Namespaces and CustomResourceDefinitions before other objects, but Works are independent of each
// other. If the Namespace or the definition of an object is in another Work, applying the object may fail until the
// other Work is applied; the agent then retries. Pack places Namespaces and CustomResourceDefinitions first, and only
// they may use the free eighth of the first Work, so they usually are in the first Work. During deletion, a Namespace
// may be deleted while objects of other Works are in it.
//
// # Fields and objects that are not distributed
//
// The API server and the controllers of a member write some fields themselves. Clean removes these fields, unless the
// value is known to be set by a user: the clusterIP of a headless Service, the selector of a Job with manualSelector,
// and the volumeName of a claim that was not bound by the controller. Of the secrets of a ServiceAccount, only those
// with the name of a token are removed.
//
// [Clean] removes:
//
//   - status: the controllers of the member write the status of the object on the member
//   - metadata.uid, metadata.resourceVersion, metadata.generation, metadata.creationTimestamp, metadata.selfLink,
//     metadata.managedFields: the API server of the hub sets the fields for the object on the hub
//   - metadata.deletionTimestamp, metadata.deletionGracePeriodSeconds: the object on the hub is being deleted; the Work
//     defines whether the object on the member is deleted as well
//   - metadata.ownerReferences: an owner is identified by its UID, which differs between clusters
//   - metadata.finalizers: the controllers that remove the finalizers run on the hub, so the object on the member could
//     not be deleted
//   - metadata.generateName: the object has a name already, and a Work rejects generated names
//   - metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: kubectl sets the annotation for the
//     object on the hub; a copy doubles the size, and kubectl on the member would use it
//   - metadata.labels[work.muster.dev/applied]: a hub can be a member itself, and the label belongs to the agent on
//     that cluster
//   - Namespace spec.finalizers: each API server sets its own finalizer
//   - Service spec.clusterIP, spec.clusterIPs: the addresses are from the range of the hub, and may be unavailable on
//     the member; the value None is kept
//   - Service spec.healthCheckNodePort: the port may be in use on the member
//   - Service spec.ports.*.nodePort: the port may be in use on the member; a requested port is indistinguishable from
//     an allocated one, so set it with an override
//   - Job spec.selector.matchLabels.controller-uid, spec.selector.matchLabels.job-name,
//     spec.selector.matchLabels[batch.kubernetes.io/controller-uid],
//     spec.selector.matchLabels[batch.kubernetes.io/job-name]: the API server derives the selector from the UID of the
//     Job, and rejects other values
//   - Job spec.template.metadata.labels.controller-uid, spec.template.metadata.labels.job-name,
//     spec.template.metadata.labels[batch.kubernetes.io/controller-uid],
//     spec.template.metadata.labels[batch.kubernetes.io/job-name]: the labels are part of the selector that is derived
//     from the UID
//   - Job metadata.labels.controller-uid, metadata.labels.job-name,
//     metadata.labels[batch.kubernetes.io/controller-uid], metadata.labels[batch.kubernetes.io/job-name]: the API
//     server adds the labels of the template to a Job without labels
//   - PersistentVolumeClaim spec.volumeName: the controller of the hub chose the volume, which exists on the hub only;
//     a volume that a user named is kept
//   - PersistentVolumeClaim, PersistentVolume metadata.annotations[pv.kubernetes.io/bind-completed],
//     metadata.annotations[pv.kubernetes.io/bound-by-controller],
//     metadata.annotations[volume.kubernetes.io/selected-node],
//     metadata.annotations[volume.kubernetes.io/storage-provisioner],
//     metadata.annotations[volume.beta.kubernetes.io/storage-provisioner]: the annotations describe the binding on the
//     hub: the controllers of the member would treat the claim as lost
//   - PersistentVolume spec.claimRef.uid, spec.claimRef.resourceVersion: the claim with this name has a different UID
//     on the member, so the volume would be treated as released
//   - Pod spec.nodeName: the scheduler of the hub chose the node, which exists on the hub only; use nodeSelector to
//     select nodes
//   - Pod spec.priority: the priority is derived from priorityClassName, and each cluster rejects other values
//   - Deployment metadata.annotations[deployment.kubernetes.io/revision]: the annotation counts the rollouts on the
//     hub, and two controllers would overwrite each other's value
//   - DaemonSet metadata.annotations[deprecated.daemonset.template.generation]: the annotation counts the rollouts on
//     the hub, and two controllers would overwrite each other's value
//
// It refuses:
//
//   - lists: a list is not an object; select its items instead
//   - objects of muster.dev and the groups below it: objects of muster belong to the hub
//   - Secret of type kubernetes.io/service-account-token: the token gives access to the hub only
//   - Secret of type bootstrap.kubernetes.io/token: the token lets clusters or nodes join the hub
//   - Event of the core group and events.k8s.io: the Event describes an object on the hub
//   - Lease, LeaseCandidate: a component on the hub renews the object, and a copy would prevent components on the
//     member from acquiring it
//   - Endpoints of the endpoints controller or an election: the member generates the object from its own Pods
//   - EndpointSlice of a controller of *.k8s.io: the member generates the object from its own Pods
//   - Pod, ReplicationController with a controller: the owner creates the object on every cluster that has the owner
//   - ReplicaSet, ControllerRevision with a controller: the owner creates the object on every cluster that has the
//     owner
//   - Job with a controller: the owner creates the object on every cluster that has the owner
//   - Node, ComponentStatus: every cluster has its own
//   - CSINode, CSIStorageCapacity, VolumeAttachment: every cluster has its own
//   - CertificateSigningRequest: the request is for a certificate of the hub
//   - NodeMetrics, PodMetrics: the metrics are those of the hub
//   - Namespace default, kube-system, kube-public and kube-node-lease: every cluster has its own
//   - ServiceAccount default: every namespace has its own
//   - ConfigMap kube-root-ca.crt and openshift-service-ca.crt: every namespace has its own, with its cluster's CA
package bundle
