package kinds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

func newOf(gvk schema.GroupVersionKind) func() runtime.Object {
	if gvk.Group == apiextensionsv1.GroupName {
		return func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }
	}
	return func() runtime.Object {
		obj, err := scheme.Scheme.New(gvk)
		if err != nil {
			panic(err) // the table contains only kinds of the scheme
		}
		return obj
	}
}

// table returns the built-in kinds that the server serves. The comment of row describes the flags.
func table() []row {
	path := func(path string) fieldPath { return fieldPath{path: path} }
	eventFields := map[string]fieldPath{
		"involvedObject.kind": path("involvedObject.kind"), "involvedObject.namespace": path("involvedObject.namespace"),
		"involvedObject.name": path("involvedObject.name"), "involvedObject.uid": path("involvedObject.uid"),
		"involvedObject.apiVersion":      path("involvedObject.apiVersion"),
		"involvedObject.resourceVersion": path("involvedObject.resourceVersion"),
		"involvedObject.fieldPath":       path("involvedObject.fieldPath"),
		"reason":                         path("reason"), "reportingComponent": path("reportingComponent"),
		"source": path("source.component"), "type": path("type"),
	}
	newEventFields := map[string]fieldPath{
		"regarding.kind": path("involvedObject.kind"), "regarding.namespace": path("involvedObject.namespace"),
		"regarding.name": path("involvedObject.name"), "regarding.uid": path("involvedObject.uid"),
		"reason": path("reason"), "type": path("type"), "reportingController": path("reportingComponent"),
	}
	podFields := map[string]fieldPath{
		"spec.nodeName": path("spec.nodeName"), "spec.restartPolicy": path("spec.restartPolicy"),
		"spec.schedulerName": path("spec.schedulerName"), "spec.serviceAccountName": path("spec.serviceAccountName"),
		"spec.hostNetwork": {"spec.hostNetwork", "false"}, "status.phase": path("status.phase"),
		"status.podIP": path("status.podIP"), "status.nominatedNodeName": path("status.nominatedNodeName"),
	}
	return []row{
		{gv: "v1", kind: "Namespace", resource: "namespaces", flags: "s", shortNames: "ns", rules: builtin{
			name: validation.ValidateNamespaceName, fields: map[string]fieldPath{"status.phase": path("status.phase"),
				"name": path("metadata.name")},
			keepStatus: true, defaults: defaultNamespace, prepareCreate: prepareNamespace, prepareUpdate: keepSpecFinalizers,
		}},
		{gv: "v1", kind: "Secret", resource: "secrets", flags: "n", rules: builtin{
			fields: map[string]fieldPath{"type": path("type")}, defaults: defaultSecret,
			validate: validateSecret, validateUpdate: validateSecretUpdate,
		}},
		{gv: "v1", kind: "ConfigMap", resource: "configmaps", flags: "n", shortNames: "cm", rules: builtin{
			validate: validateConfigMap, validateUpdate: validateConfigMapUpdate,
		}},
		{gv: "v1", kind: "ServiceAccount", resource: "serviceaccounts", flags: "n", shortNames: "sa"},
		{gv: "v1", kind: "Event", resource: "events", flags: "no", shortNames: "ev", rules: builtin{
			fields: eventFields, validate: validateEvent, defaults: defaultEvent,
		}},
		{gv: "v1", kind: "Pod", resource: "pods", flags: "nsg", shortNames: "po", categories: "all", rules: builtin{
			fields: podFields, defaults: defaultPod, keepStatus: true, prepareCreate: preparePod, graceful: gracefulPod,
			validate: validatePod,
		}},
		{gv: "v1", kind: "Node", resource: "nodes", flags: "s", shortNames: "no", rules: builtin{
			fields:     map[string]fieldPath{"spec.unschedulable": {"spec.unschedulable", "false"}},
			keepStatus: true, defaults: defaultNode,
		}},
		{gv: "v1", kind: "Service", resource: "services", flags: "nso", shortNames: "svc", categories: "all", rules: builtin{
			fields: map[string]fieldPath{"spec.clusterIP": path("spec.clusterIP"), "spec.type": path("spec.type")},
			name:   validation.NameIsDNS1035Label, defaults: defaultService, validate: validateService,
		}},
		{gv: "v1", kind: "Endpoints", resource: "endpoints", flags: "no", shortNames: "ep"},
		{gv: "v1", kind: "PersistentVolumeClaim", resource: "persistentvolumeclaims", flags: "ns", shortNames: "pvc",
			rules: builtin{
				defaults: defaultPVC, keepStatus: true, prepareCreate: preparePVC,
			}},
		{gv: "v1", kind: "PersistentVolume", resource: "persistentvolumes", flags: "s", shortNames: "pv"},
		{gv: "v1", kind: "ResourceQuota", resource: "resourcequotas", flags: "ns", shortNames: "quota"},
		{gv: "v1", kind: "LimitRange", resource: "limitranges", flags: "no", shortNames: "limits"},
		{gv: "v1", kind: "PodTemplate", resource: "podtemplates", flags: "nog", rules: builtin{defaults: defaultPodTemplate}},
		{gv: "v1", kind: "ReplicationController", resource: "replicationcontrollers", flags: "nsg", shortNames: "rc",
			categories: "all", rules: builtin{
				defaults: defaultReplicationController,
			}},
		{gv: "apps/v1", kind: "Deployment", resource: "deployments", flags: "nsg", shortNames: "deploy", categories: "all",
			rules: builtin{
				defaults: defaultDeployment, validate: validateDeployment, validateUpdate: immutableSelector,
			}},
		{gv: "apps/v1", kind: "StatefulSet", resource: "statefulsets", flags: "nsg", shortNames: "sts", categories: "all",
			rules: builtin{
				defaults: defaultStatefulSet, validate: validateStatefulSet, validateUpdate: immutableSelector,
			}},
		{gv: "apps/v1", kind: "DaemonSet", resource: "daemonsets", flags: "nsg", shortNames: "ds", categories: "all",
			rules: builtin{
				defaults: defaultDaemonSet, validate: validateDaemonSet, validateUpdate: immutableSelector,
			}},
		{gv: "apps/v1", kind: "ReplicaSet", resource: "replicasets", flags: "nsg", shortNames: "rs", categories: "all",
			rules: builtin{
				fields: map[string]fieldPath{"status.replicas": {"status.replicas", "0"}}, defaults: defaultReplicaSet,
				validate: validateReplicaSet, validateUpdate: immutableSelector,
			}},
		{gv: "apps/v1", kind: "ControllerRevision", resource: "controllerrevisions", flags: "n"},
		{gv: "batch/v1", kind: "Job", resource: "jobs", flags: "nsg", categories: "all", rules: builtin{
			orphans: true, fields: map[string]fieldPath{"status.successful": {"status.succeeded", "0"}}, defaults: defaultJob,
			prepareCreate: prepareJob,
		}},
		{gv: "batch/v1", kind: "CronJob", resource: "cronjobs", flags: "nsg", shortNames: "cj", categories: "all",
			rules: builtin{
				defaults: defaultCronJob,
			}},
		{gv: "rbac.authorization.k8s.io/v1", kind: "Role", resource: "roles", flags: "no", rules: builtin{
			name: pathSegmentName, validate: validateRole,
		}},
		{gv: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", resource: "clusterroles", flags: "o", rules: builtin{
			name: pathSegmentName, validate: validateRole,
		}},
		{gv: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", resource: "rolebindings", flags: "no", rules: builtin{
			name: pathSegmentName, defaults: defaultBinding, validate: validateBinding, validateUpdate: immutableRoleRef,
		}},
		{gv: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", resource: "clusterrolebindings", flags: "o",
			rules: builtin{
				name: pathSegmentName, defaults: defaultBinding, validate: validateBinding, validateUpdate: immutableRoleRef,
			}},
		{gv: "coordination.k8s.io/v1", kind: "Lease", resource: "leases", flags: "nou",
			rules: builtin{validate: validateLease, metaOnCreate: true}},
		{gv: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", resource: "certificatesigningrequests", flags: "s",
			shortNames: "csr", rules: builtin{
				name: validation.NameIsDNSSubdomain, fields: map[string]fieldPath{"spec.signerName": path("spec.signerName")},
				defaults: defaultCSR, validate: validateCSR, prepareUpdate: keepSpec,
			}},
		{gv: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", resource: "customresourcedefinitions", flags: "sgu",
			shortNames: "crd crds",
			categories: "api-extensions", rules: builtin{
				defaults: defaultCRD, prepareCreate: prepareCRD, keepStatus: true, validate: validateCRD,
				validateUpdate: validateCRDUpdate,
			}},
		{gv: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy", resource: "validatingadmissionpolicies",
			flags: "sgu", categories: "api-extensions"},
		{gv: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicyBinding",
			resource: "validatingadmissionpolicybindings",
			flags:    "gu", categories: "api-extensions"},
		{gv: "networking.k8s.io/v1", kind: "NetworkPolicy", resource: "networkpolicies", flags: "ng", shortNames: "netpol",
			rules: builtin{defaults: defaultNetworkPolicy}},
		{gv: "networking.k8s.io/v1", kind: "Ingress", resource: "ingresses", flags: "nsg", shortNames: "ing"},
		{gv: "networking.k8s.io/v1", kind: "IngressClass", resource: "ingressclasses", flags: "g"},
		{gv: "policy/v1", kind: "PodDisruptionBudget", resource: "poddisruptionbudgets", flags: "nsgu", shortNames: "pdb"},
		{gv: "autoscaling/v2", kind: "HorizontalPodAutoscaler", resource: "horizontalpodautoscalers", flags: "ns",
			shortNames: "hpa", categories: "all"},
		{gv: "scheduling.k8s.io/v1", kind: "PriorityClass", resource: "priorityclasses", flags: "g", shortNames: "pc",
			rules: builtin{constant: true}},
		{gv: "storage.k8s.io/v1", kind: "StorageClass", resource: "storageclasses", shortNames: "sc"},
		{gv: "discovery.k8s.io/v1", kind: "EndpointSlice", resource: "endpointslices", flags: "ng"},
		{gv: "events.k8s.io/v1", kind: "Event", resource: "events", flags: "no", shortNames: "ev", rules: builtin{
			fields: newEventFields, defaults: defaultNewEvent, validate: validateNewEvent,
		}},
		{gv: "authentication.k8s.io/v1", kind: "TokenReview", resource: "tokenreviews", flags: "v"},
		{gv: "authentication.k8s.io/v1", kind: "SelfSubjectReview", resource: "selfsubjectreviews", flags: "v"},
		{gv: "authorization.k8s.io/v1", kind: "SubjectAccessReview", resource: "subjectaccessreviews", flags: "v"},
		{gv: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", resource: "selfsubjectaccessreviews", flags: "v"},
		{gv: "authorization.k8s.io/v1", kind: "LocalSubjectAccessReview", resource: "localsubjectaccessreviews", flags: "vn"},
		{gv: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", resource: "selfsubjectrulesreviews", flags: "v"},
	}
}

// The two served kinds of Events share one storage, in the encoding of v1. eventNames maps the fields of
// events.k8s.io/v1 to those of v1.
var eventNames = [][2]string{
	{"note", "message"}, {"regarding", "involvedObject"}, {"reportingController", "reportingComponent"},
	{"deprecatedSource", "source"}, {"deprecatedFirstTimestamp", "firstTimestamp"},
	{"deprecatedLastTimestamp", "lastTimestamp"}, {"deprecatedCount", "count"},
}

func eventToCore(obj Object) {
	rename(obj, 0, 1)
	obj["apiVersion"] = "v1"
}

func eventFromCore(obj Object) {
	rename(obj, 1, 0)
	obj["apiVersion"] = "events.k8s.io/v1"
	if obj["eventTime"] == nil {
		obj["eventTime"] = nil
	}
}

func rename(obj Object, from, to int) {
	for _, names := range eventNames {
		if value, ok := obj[names[from]]; ok {
			delete(obj, names[from])
			obj[names[to]] = value
		}
	}
}

func keepSpecFinalizers(obj, old Object) {
	finalizers, _, _ := unstructured.NestedSlice(old, "spec", "finalizers")
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		obj["spec"] = spec
	}
	if finalizers == nil {
		delete(spec, "finalizers")
	} else {
		spec["finalizers"] = finalizers
	}
}

func keepSpec(obj, old Object) { copyField(obj, old, "spec") }
