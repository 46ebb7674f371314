// Package apiserver is a Kubernetes API server in memory, for tests. Controllers, informers and clients run against it
// in one process, without network or disk, in real time or in the virtual time of a testing/synctest bubble.
//
//	s, err := apiserver.New(apiserver.Options{})
//	defer s.Close()
//	c, err := client.New(s.Admin(), client.Options{})
//
// # Access
//
// Config and Admin return client configurations whose requests are function calls. They work with client-go (typed,
// dynamic, metadata and discovery clients), controller-runtime and informers, in JSON and in protobuf. ConfigTLS and
// DialContext connect by TLS over an in-memory pipe instead, for programs that build their own connections and for
// client certificates. The Server is an http.Handler, so that httptest can put it on a real port.
//
// Requests are authorized by RBAC. A request is authenticated by the user of the client configuration, by a client
// certificate of the Server's certificate authority, by a token of Token, by a ServiceAccount token of the subresource
// token, or by a bootstrap token, whose Secret is in kube-system. Tokens expire by the Server's clock.
//
// # Behavior
//
// The Server stores objects with one revision counter, as etcd does. After Compact, requests for old resourceVersions
// fail with 410. Save and Restore reset the Server to an earlier state with decreasing resourceVersions, and
// DropWatches ends all watches. The Server serves CustomResourceDefinitions with the libraries of Kubernetes for
// schemas, pruning, defaulting, CEL and managed fields. Built-in controllers collect garbage, delete the contents of
// terminating namespaces, create the ServiceAccount default and the ConfigMap kube-root-ca.crt, aggregate ClusterRoles,
// count ResourceQuotas and sign approved CertificateSigningRequests of the signer kubernetes.io/kube-apiserver-client.
// They react to changes and have no timers. Settle runs them until they have no pending work.
//
// Faults make single requests fail before or after they take effect, delay requests and end watches.
//
// # Virtual time
//
// In a testing/synctest bubble, call New inside the bubble, and call Close before the function of the bubble returns.
// All waiting of the Server is durable. Requests other than watches run in the goroutine of the client. An import of
// this package removes the handler in k8s.io/apimachinery/pkg/util/runtime.ErrorHandlers that limits the rate of
// errors, because it would sleep for decades in a bubble.
//
// # Differences
//
// TestDifferential_RandomRequests sends random requests to this server and to a real control plane and compares the
// responses. These differences are known:
//
//   - Admission webhooks and policies, API priority and fairness, audit, OpenAPI and conversion webhooks are not
//     implemented. ValidatingAdmissionPolicies are stored and not enforced. Webhook configurations are not served.
//   - The subresources scale, eviction, binding, exec, log, attach, portforward, proxy, resize and ephemeralcontainers
//     return 501. The OpenAPI paths return 501.
//   - Only the kinds that discovery lists are served, each in one version; Events are served in both groups.
//   - Defaults and validation of built-in kinds are reimplemented, because those of Kubernetes cannot be imported. They
//     are complete for Namespaces, Secrets, ConfigMaps, ServiceAccounts, Leases, Roles, bindings and
//     CertificateSigningRequests. For Pods, workloads and Services they cover the frequently used fields. A
//     CustomResourceDefinition with an invalid schema is rejected with one message instead of one for each problem.
//   - There are no nodes and no workload controllers: Deployments create no Pods, and Jobs do not run. A gracefully
//     deleted Pod on a node remains until it is deleted with a grace period of zero or its namespace is deleted.
//   - ServiceAccount token Secrets are not populated. Bearer tokens are signed with a key of the Server, so other
//     components cannot verify them.
//   - ResourceQuotas count objects. CPU, memory and scopes are not counted.
//   - Only the roles cluster-admin, admin, edit, view, system:discovery, system:basic-user and
//     system:public-info-viewer exist. The rules of admin, edit and view contain the served kinds.
//   - Controllers act immediately: names are accepted and certificates are signed within microseconds.
//   - A request for a resourceVersion of the future fails immediately instead of after three seconds.
//   - Tables have the columns Name and Age, or those of the CustomResourceDefinition.
//   - Causes of a 422 may be in another order or listed once instead of twice.
//   - Server-side apply does not reject unknown fields in the metadata of built-in kinds. For a body of another kind
//     than that of the path, the server returns 400 for custom resources, where Kubernetes returns 422.
package apiserver
