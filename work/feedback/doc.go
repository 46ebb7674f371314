// Package feedback extracts values from an object for the status of a Work.
//
// [Compile] compiles a JSONPath in the syntax of kubectl, with or without braces. [Path.Value] evaluates it for an
// object:
//
//	.status.loadBalancer.ingress[0].ip
//	{.status.conditions[?(@.type=="Ready")].status}
//	.status.hosts[*].name
//	.metadata.annotations.example\.com/note
//
// A single value is reported with its own type. Several values are reported as a JSON list in the order of the
// object; the values of a map, selected by .*, are in the order of their keys. A missing or null value is omitted,
// and is not an error.
//
// A path comes from the hub and an object from a member, so neither is trusted:
//
//   - The syntax is limited. Recursive descent (..), range and literals are rejected, because they visit the whole
//     object or nothing of it. The evaluation visits at most 100,000 values, which takes some milliseconds.
//   - A value of more than [MaxValueBytes] is an error. It is never cut, because a part of a JSON value is invalid.
//   - Of a Secret, only the type and identifying metadata are reported, without annotations and managed fields. An
//     annotation of kubectl contains all the data.
//
// The parser is that of k8s.io/client-go/util/jsonpath. The evaluation is not: in client-go, the order of the values
// of a map is random and would change the status, a Path is not safe for concurrent use, and nested unions take
// unlimited time.
//
// [WellKnown] returns the values that most users need:
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
