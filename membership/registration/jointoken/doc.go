// Package jointoken contains the controller of JoinTokens: it writes the credential with which an agent registers into
// the Secret of each JoinToken, renews the credential while the token is valid, and removes it when the token ends.
//
// [SetupWithManager] adds the controller to a manager. The hub's controller of JoinRequests uses the other functions:
// [Check] checks that a request was made with the token that it names and that the token admits it, [Count] counts the
// cluster before it is admitted, and [Acceptor] implements spec.autoAccept.
//
// # Objects of a token
//
// With type ServiceAccount all objects are in the registration namespace and are deleted with the JoinToken: a
// ServiceAccount "join-<name>", a RoleBinding of the same name to the ClusterRole "muster-bootstrap", and a Secret
// with the name of the token. An agent reads the key "join.yaml" of the Secret. The key "values" contains the same
// credential as values for the Helm chart muster-agent:
//
//	helm install muster-agent deploy/charts/muster-agent --values values.yaml
//
// When the JoinToken is deleted, every copy of the credential becomes invalid as soon as the API server's cache of
// tokens expires (10 seconds).
//
// # Which clusters a token admits
//
// Any cluster, unless spec.clusterID is set. A token that a MemberCluster owns (metadata.ownerReferences) admits only
// that MemberCluster: when the MemberCluster is deleted, the hub admits no cluster with the token, and creates no
// other MemberCluster.
//
// # How a token ends
//
// A token ends when it expires or its uses are used up. The hub refuses later requests and, after the last use, the
// requests of every cluster that was not counted. The Secret then contains no credential any more, only the key with
// which the hub verifies requests that were made in time. Copies of the credential become invalid ten minutes later,
// when the ServiceAccount is deleted, so that a cluster that was admitted last can still read its answer. Decisions
// that affect other components use the API server's clock: a request was made in time according to its
// creationTimestamp, and a credential expires at most ten minutes after its token.
//
// # Bootstrap tokens
//
// With type BootstrapToken the credential is a token that a user can type, "<id>.<secret>", like those of kubeadm.
// Package discovery derives the bootstrap of an agent from the token and the address of the hub.
// Options.BootstrapTokens enables this type. Instead of the ServiceAccount there is the Secret
// kube-system/bootstrap-token-<id>, and the RoleBinding is for the user of that one token, "system:bootstrap:<id>".
// Its group "system:bootstrappers:muster" has no permissions, and identifies muster's tokens in policies and audit
// logs. The Secret with join.yaml is the same; its key is derived from the token.
//
// A token is prolonged, not replaced: it expires at most spec.credentialTTLSeconds after a hub last prolonged it. When
// the JoinToken ends, the token can no longer be used to discover the hub, and expires ten minutes later. To get
// another secret with the same ID, delete the Secret in kube-system. The JoinToken does not own the Secret, because it
// is in another namespace: the controller deletes it, also if it was not running while the JoinToken was deleted.
//
// The controller adopts a Secret of that name that an administrator has created before, with kubeadm token create: it
// never changes or deletes it, the Secret's own expiration applies, and its groups get no permissions. The token must
// have both usages. Otherwise the JoinToken is not ready, and the message names the missing usage. After such a Secret
// was deleted, the controller does not create another one.
//
// # Permissions for bootstrap tokens
//
// The controller needs to get, list, watch, create, update and delete Secrets in kube-system, and RBAC cannot limit
// that to bootstrap tokens: a rule for create cannot contain names, and there are no rules for types. A user with
// these permissions can create a token of any ServiceAccount there, which is equivalent to cluster-admin. Therefore
// these permissions are in a separate Role, and a hub with this Role should have an admission policy that permits the
// hub's user to write only Secrets of type bootstrap.kubernetes.io/token there.
package jointoken
