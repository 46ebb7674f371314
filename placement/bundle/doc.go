// Package bundle makes Works of objects. It is pure: no client, no clock.
//
// [Clean] takes from an object of the hub what is of the hub alone, or refuses one that no member should get. [Parse]
// reads a manifest that a user wrote. Either is an [Object]: what it is told by, its text, and the hash of that.
// [Pack] divides objects among Works, and [Arrange] says how those that a member has become those.
//
// # Works
//
// A Work has a limit, which is etcd's in the end, so many objects need several. Where an object is must not depend on
// what else there is: each move makes one Work give an object up and another take it over. So Pack starts from where
// everything is:
//
//   - An object stays in its Work for as long as there is room for it there.
//   - Where objects have grown over the limit, changed ones go, never an unchanged one.
//   - What has no place yet goes into the first Work with room for it, else into a new one. It leaves an eighth of each
//     Work free, for the others to grow.
//   - A Work that has become empty goes. Works are never merged.
//
// So to add, remove or change an object changes one Work, or two if it has outgrown its own, and Works that did not
// change have the hash that they had.
//
// # Steps
//
// An object that moves is in two Works for a while. If the one that it moves from gave it up first, or the member came
// to that first, the object would be deleted and made again. So [Arrange] has what moves written, and applied by the
// member, before it is given up:
//
//   - A Work that lets an object go, or is deleted, waits until each Work that gains one of its objects is there, has
//     it, and is settled.
//   - An object that was on its way already, when something else is wanted, is in three Works for a while. The first of
//     those that it leaves keeps it until it has arrived, and the others let it go as soon as that one has it.
//   - So no Works wait for each other in a circle: what leaves a Work is longer than what is free there, so it goes to
//     one that has less in it.
//   - A Work whose name is taken by one that is being deleted waits until that is gone.
//   - All others are written at once. One that is as it is to be is not written.
//
// A [Held] says what there is. Two things tell whether a Work is as it is to be, beside its objects: the hash of its
// options, which are the same for all Works of a member, and whether it has its marks, the labels and annotations that
// say whose it is. What changes more often than that, such as a revision and its time, is a note on the first Work
// alone, so that a revision that leaves the objects as they were costs one small write. It goes with the content, and
// does not wait: where the first Work has to, the note is written without it. A note therefore says what the member was
// told, and an empty list of steps that it has been written.
//
// Arrange has no memory. Called with the existing Works after each change, by any process, it leads from every state
// to the end. What it is given must be no older than the caller's last write: a cache that is late would have that
// repeated.
//
// # Order
//
// A Work applies Namespaces and CustomResourceDefinitions before what needs them, but Works know nothing of each other:
// an object whose Namespace or kind comes by another Work may be tried in vain until that is there, and is then applied
// by the agent's next try. Pack places Namespaces and CustomResourceDefinitions first, and they alone may use the
// eighth of the first Work that others leave free; so usually they are in the first Work, with what fits beside them.
// The same goes the other way: a Namespace may be deleted while objects of other Works are in it.
//
// # What never travels
//
// What the hub's API server and controllers have written a member's will write themselves. Where one can see that a
// field is the user's own wish it stays: the clusterIP of a headless Service, the selector of a Job with
// manualSelector, the volumeName of a claim that was not bound by the controller. Of a ServiceAccount's secrets only
// those go that are named like its tokens.
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
