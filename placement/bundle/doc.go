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
// [Clean] takes away:
//
//   - status: the member's controllers report on the member's object
//   - metadata.uid, metadata.resourceVersion, metadata.generation, metadata.creationTimestamp, metadata.selfLink,
//     metadata.managedFields: the hub's API server wrote it about the hub's object
//   - metadata.deletionTimestamp, metadata.deletionGracePeriodSeconds: what is being deleted is the hub's object;
//     whether the member's goes, too, is for the Work to say
//   - metadata.ownerReferences: an owner is found by its UID, which is another one on each cluster
//   - metadata.finalizers: who takes them off runs on the hub: the member's object could never be deleted
//   - metadata.generateName: the object has its name by now, and a Work refuses to make up others
//   - metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: kubectl wrote it about the hub's object,
//     it doubles the size, and kubectl on the member would compare with it
//   - metadata.labels[work.muster.dev/applied]: a hub may be a member itself: the label is for the agent there
//   - Namespace spec.finalizers: each API server writes its own
//   - Service spec.clusterIP, spec.clusterIPs: they are from the hub's range, and out of the member's or in use there;
//     None is a wish, and stays
//   - Service spec.healthCheckNodePort: it was free on the hub, and may not be on the member
//   - Service spec.ports.*.nodePort: it was free on the hub, and may not be on the member; what was wished for looks
//     the same, and is for an override
//   - Job spec.selector.matchLabels.controller-uid, spec.selector.matchLabels.job-name,
//     spec.selector.matchLabels[batch.kubernetes.io/controller-uid],
//     spec.selector.matchLabels[batch.kubernetes.io/job-name]: the API server makes it of the Job's UID, and refuses
//     any other
//   - Job spec.template.metadata.labels.controller-uid, spec.template.metadata.labels.job-name,
//     spec.template.metadata.labels[batch.kubernetes.io/controller-uid],
//     spec.template.metadata.labels[batch.kubernetes.io/job-name]: they are part of the selector that is made of the
//     UID
//   - Job metadata.labels.controller-uid, metadata.labels.job-name,
//     metadata.labels[batch.kubernetes.io/controller-uid], metadata.labels[batch.kubernetes.io/job-name]: the API
//     server adds the template's labels where a Job has none
//   - PersistentVolumeClaim spec.volumeName: the hub's controller chose the volume, which is on the hub; a volume that
//     the user named stays
//   - PersistentVolumeClaim, PersistentVolume metadata.annotations[pv.kubernetes.io/bind-completed],
//     metadata.annotations[pv.kubernetes.io/bound-by-controller],
//     metadata.annotations[volume.kubernetes.io/selected-node],
//     metadata.annotations[volume.kubernetes.io/storage-provisioner],
//     metadata.annotations[volume.beta.kubernetes.io/storage-provisioner]: the hub's controllers wrote how they bound
//     it: the member's would take the claim for lost
//   - PersistentVolume spec.claimRef.uid, spec.claimRef.resourceVersion: the claim of that name has another UID on the
//     member, and the volume would count as released
//   - Pod spec.nodeName: the hub's scheduler chose the node, which is on the hub; to wish for one there is nodeSelector
//   - Pod spec.priority: it is looked up by priorityClassName, and each cluster refuses any other value
//   - Deployment metadata.annotations[deployment.kubernetes.io/revision]: it counts the hub's rollouts, and two
//     controllers would correct it in turns
//   - DaemonSet metadata.annotations[deprecated.daemonset.template.generation]: it counts the hub's rollouts, and two
//     controllers would correct it in turns
//
// It refuses:
//
//   - lists: a list is no object, and its items may travel
//   - objects of muster.dev and the groups below it: they are what the hub works with
//   - Secret of type kubernetes.io/service-account-token: a token of the hub gives access to the hub, and to nothing
//     else
//   - Secret of type bootstrap.kubernetes.io/token: it lets clusters or nodes join the hub
//   - Event of the core group and events.k8s.io: it tells what happened on the hub
//   - Lease, LeaseCandidate: it is renewed by who runs on the hub, and would keep others from it
//   - Endpoints of the endpoints controller or an election: the member makes it of its own pods
//   - EndpointSlice of a controller of *.k8s.io: the member makes it of its own pods
//   - Pod, ReplicationController with a controller: its controller makes it where the controller's object is
//   - ReplicaSet, ControllerRevision with a controller: its controller makes it where the controller's object is
//   - Job with a controller: its controller makes it where the controller's object is
//   - Node, ComponentStatus: every cluster has its own
//   - CSINode, CSIStorageCapacity, VolumeAttachment: every cluster has its own
//   - CertificateSigningRequest: it asks the hub for a certificate
//   - NodeMetrics, PodMetrics: it was measured on the hub
//   - Namespace default, kube-system, kube-public and kube-node-lease: every cluster has its own
//   - ServiceAccount default: every namespace has its own
//   - ConfigMap kube-root-ca.crt and openshift-service-ca.crt: every namespace has its own, with its cluster's CA
package bundle
