package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPrepared checks the fields that controllers of Kubernetes, and injectors of CA bundles, write in every cluster.
// They are dropped from manifests; similar fields are not.
func TestPrepared(t *testing.T) {
	const certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI=" // -----BEGIN CERTIFICATE-----
	hooks := func(kind, annotations, bundle string) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: " + kind + ", metadata: {name: a" + annotations +
			"}, webhooks: [{name: x, clientConfig: {url: u}}, {name: y, clientConfig: {url: u" + bundle + "}}]}"
	}
	definition := func(bundle string) string {
		return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {" +
			"group: g, conversion: {strategy: Webhook, webhook: {clientConfig: {url: u" + bundle + "}}}}}"
	}
	service := func(annotations, bundle string) string {
		return "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a" + annotations +
			"}, spec: {group: g" + bundle + "}}"
	}
	const injected = ", annotations: {cert-manager.io/inject-ca-from: a/b}"
	const serving = ", annotations: {service.beta.openshift.io/inject-cabundle: 'true'}"
	pod := func(finalizers string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a" + finalizers + "}}"
	}
	const whole = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}"
	for _, tc := range []struct{ reason, manifest, want string }{ // an empty want is the manifest
		{
			"revisions of a ReplicaSet",
			"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, annotations: " +
				"{deployment.kubernetes.io/revision: '1', deployment.kubernetes.io/desired-replicas: '2'}}}",
			"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}}",
		},
		{
			"deployment annotation on another kind",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: '1'}}}", "",
		},
		{"rules of an aggregated ClusterRole", whole + ", rules: [{verbs: [get]}]}", whole + "}"},
		{"empty rules of an aggregated ClusterRole", whole + ", rules: []}", whole + "}"},
		{
			"rules of another ClusterRole",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: []}", "",
		},

		{
			"newline as the CA bundle of a mutating webhook", hooks("MutatingWebhookConfiguration", "", ", caBundle: Cg=="),
			hooks("MutatingWebhookConfiguration", "", ""),
		},
		{
			"empty CA bundle of a validating webhook", hooks("ValidatingWebhookConfiguration", "", ", caBundle: ''"),
			hooks("ValidatingWebhookConfiguration", "", ""),
		},
		{"null as the CA bundle of a webhook", hooks("ValidatingWebhookConfiguration", "", ", caBundle: null"),
			hooks("ValidatingWebhookConfiguration", "", "")},
		{"certificate of a webhook", hooks("ValidatingWebhookConfiguration", "", ", caBundle: "+certificate), ""},
		{
			"certificate of a webhook with an injector annotation",
			hooks("ValidatingWebhookConfiguration", injected, ", caBundle: "+certificate),
			hooks("ValidatingWebhookConfiguration", injected, ""),
		},
		{"newline as the CA bundle of a definition", definition(", caBundle: Cg=="), definition("")},
		{"certificate of a definition", definition(", caBundle: " + certificate), ""},
		{"newline as the CA bundle of an aggregated API", service("", ", caBundle: Cg=="), service("", "")},
		{"certificate of an aggregated API with an injector annotation", service(serving, ", caBundle: "+certificate),
			service(serving, "")},

		{"finalizer of the Job controller", pod(", finalizers: [batch.kubernetes.io/job-tracking]"), pod("")},
		{
			"finalizer of the Job controller and another finalizer",
			pod(", finalizers: [batch.kubernetes.io/job-tracking, example.com/f]"),
			pod(", finalizers: [example.com/f]"),
		},
		{"another finalizer", pod(", finalizers: [example.com/f]"), ""},
		{
			"token of a ServiceAccount",
			"{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: " +
				"{kubernetes.io/service-account.uid: u, kubernetes.io/service-account.name: n}}, data: {token: eA==, extra: eA==}}",
			"{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: " +
				"{kubernetes.io/service-account.name: n}}, data: {extra: eA==}}",
		},
		{"Secret with a key named token", "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {token: eA==}}", ""},
		{
			"labels and selector of a Job",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {controller-uid: u, job-name: a}}, spec: " +
				" {selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}, template: {metadata: {labels: " +
				"{controller-uid: u, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: a, x: y}}}}}",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {metadata: {labels: {x: y}}}}}",
		},
		{
			"manual selector of a Job", "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: " +
				"{manualSelector: true, selector: {matchLabels: {controller-uid: u}}}}", "",
		},
		{
			"status of a Kubernetes kind", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, status: {x: 1}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}",
		},
		{"status of a custom resource", "{apiVersion: example.com/v1, kind: X, metadata: {name: a}, status: {x: 1}}", ""},
	} {
		t.Run(strings.ReplaceAll(tc.reason, " ", "_"), func(t *testing.T) {
			manifest := &unstructured.Unstructured{Object: object(t, tc.manifest)}
			before := manifest.DeepCopy()
			got := prepared(manifest)
			require.Equal(t, before, manifest, "the manifest is not changed")
			if tc.want == "" {
				require.Same(t, manifest, got, "no field is dropped")
				return
			}
			require.Empty(t, cmp.Diff(object(t, tc.want), got.Object), "(-want +got)")
		})
	}
}
