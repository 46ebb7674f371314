// Package feedback takes values from an object, for the status of a Work.
//
// [Compile] reads a JSONPath as kubectl does, with or without its braces, and [Path.Value] finds what it leads to:
//
//	.status.loadBalancer.ingress[0].ip
//	{.status.conditions[?(@.type=="Ready")].status}
//	.status.hosts[*].name
//	.metadata.annotations.example\.com/note
//
// One value is reported with its own type, several as a JSON list in the order of the object (the fields of a map, by
// .*, in the order of their names). What is not there, or is null, is no value and no mistake.
//
// A path comes from the hub and an object from a member, so that neither is trusted:
//
//   - What a path may be is limited: recursive descent (..), range and literals are refused, since they look at
//     everything or at nothing. While it is followed no more than [MaxVisits] values are looked at, which takes some
//     milliseconds.
//   - A value of more than [MaxValueBytes] is an error, never cut, since half of a JSON is none.
//   - Of a Secret no more is reported than what names it: metadata but for annotations and managed fields, and the
//     type. kubectl leaves all the data in an annotation.
//
// The parser is that of k8s.io/client-go/util/jsonpath. What follows the path is not: there, the order of a map's
// values changes from one time to the next, and with it would the status, a Path is not safe for concurrent use, and a
// union of unions takes time without limit.
//
// [WellKnown] has the values that most people want:
//
//	Deployment             replicas readyReplicas availableReplicas updatedReplicas
//	StatefulSet            replicas readyReplicas availableReplicas updatedReplicas
//	ReplicaSet             replicas readyReplicas availableReplicas
//	DaemonSet              desiredNumberScheduled numberReady numberAvailable updatedNumberScheduled
//	Job                    jobComplete jobSucceeded jobFailed jobActive
//	Pod                    podPhase podReady
//	Service                loadBalancerAddress
//	PersistentVolumeClaim  claimPhase
package feedback
