// Package readiness evaluates whether an object is ready, based only on the object.
//
// [Registry.Assess] evaluates an object by its kind. The zero Registry has the default rules. These are the rules of
// kstatus (github.com/fluxcd/cli-utils), except where kstatus reports readiness too early or without a reason:
//
//	Job                      ready when it has completed; suspended: progressing
//	Pod                      ready by its condition, or when it has succeeded if its containers end; crash loop or failed Pod: failed
//	Service of a LoadBalancer  ready when it has an address
//	StatefulSet, DaemonSet   also with the strategy OnDelete: when all replicas are ready, old or new, and no surplus exists
//	ReplicationController    ready when all replicas are ready
//	HorizontalPodAutoscaler  ready when it can scale its target; without metrics: failed
//	PodDisruptionBudget      ready when its controller has computed it; if that fails: failed
//	PersistentVolumeClaim    ready when it is bound; if its volume is lost: failed
//	Namespace                ready when it is active
//	PersistentVolume         ready when it is available, bound or released
//	APIService               ready when it is available
//	kinds of operators       a table of rules, for example for cert-manager, Flux, Argo, Gateway API, Crossplane and Prometheus
//	other custom resources   conventions of operators: conditions, phases and errors named after a failure or a transition,
//	                         and ready replicas; without a status: ready, and [Result.Unreported]
//	all others               kstatus: replicas, phase, and the conditions Ready, Reconciling, Stalled and Established
//
// An object of a kind without a status (ConfigMap, Role, webhook configuration) is ready as soon as it exists. A
// PersistentVolumeClaim whose storage class has the binding mode WaitForFirstConsumer is not bound before a Pod uses
// it, so the wave of that Pod must not wait for the claim.
//
// A product adds rules for its own kinds:
//
//	registry := readiness.Registry{{Group: "example.com", Kind: "Database"}: assessDatabase}
//
// A Work may contain a rule in CEL, the Common Expression Language, over the variable object, see [CompileCEL]:
//
//	object.status.phase == "Running"
//	has(object.status.endpoint) && object.status.endpoint != ""
//	object.?status.?phase.orValue("") in ["Running", "Done"]
//	object.status.conditions.exists(c, c.type == "Synced" && c.status == "True")
//
// Two rules apply before every Func. An object that is being deleted is not ready (a Job that has failed is still
// failed). An object whose status.observedGeneration differs from its generation is not ready, because its status
// describes an earlier generation.
//
// The caller never fails: if a [Func] panics, a rule exceeds its cost limit, or an object is malformed, the [Result]
// reports that.
package readiness
