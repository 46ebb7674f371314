// Package readiness says whether an object is ready, from nothing but the object.
//
// [Registry.Assess] knows what the kind means by it. Its zero value has the defaults, which are those of kstatus
// (github.com/fluxcd/cli-utils) but where that would say ready too early, or not say why:
//
//	Job                      when it has completed; suspended: progressing
//	Pod                      when it is ready, or has succeeded if it is one that is to end; crash loops and failed pods: failed
//	Service of a LoadBalancer  when it has an address
//	StatefulSet, DaemonSet   likewise with the strategy OnDelete: when all replicas are ready, new or old, and no more of them are there
//	ReplicationController    when all replicas are ready
//	HorizontalPodAutoscaler  when it can scale its target; without metrics: failed
//	PodDisruptionBudget      when its controller has computed it; when that fails: failed
//	PersistentVolumeClaim    when it is bound; one whose volume is lost: failed
//	Namespace                when it is active
//	PersistentVolume         when it is available or bound
//	APIService               when it is available
//	kinds of operators       as a table says, such as those of cert-manager, Flux, Argo, Gateway API, Crossplane and Prometheus
//	other custom resources   by the conventions of operators: conditions and words that are named after a failure or a step on
//	                         the way, and ready replicas; without a status: ready, and [Result.Unreported]
//	all else                 as kstatus says: by replicas, phase, and the conditions Ready, Reconciling, Stalled, Established
//
// What has no status (a ConfigMap, a Role, a webhook's configuration) is ready as soon as it is there. A claim on a
// volume whose class waits for the first consumer is not bound before a pod uses it: do not have that pod's wave wait
// for it.
//
// A product adds what it knows of its own kinds:
//
//	registry := readiness.Registry{{Group: "example.com", Kind: "Database"}: assessDatabase}
//
// and a Work may bring a rule in CEL, the Common Expression Language, over the variable object, see [CompileCEL]:
//
//	object.status.phase == "Running"
//	has(object.status.endpoint) && object.status.endpoint != ""
//	object.?status.?phase.orValue("") in ["Running", "Done"]
//	object.status.conditions.exists(c, c.type == "Synced" && c.status == "True")
//
// Two rules hold for every Func: an object that is being deleted is not ready (a Job that has failed is still failed),
// and neither is one whose status.observedGeneration is not its generation, since its status is about what it was
// before.
//
// The caller never fails: a [Func] that panics, a rule that costs too much and an object that makes no sense each
// give a [Result] that says so.
package readiness
