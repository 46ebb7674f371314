// Package jointoken keeps JoinTokens: it puts into each one's Secret what an agent needs to ask a hub to join it,
// renews that while the token lasts, and takes it away when the token ends.
//
// [SetupWithManager] adds the controller to a manager. The hub's own controller of JoinRequests uses the
// rest: [Check] tells whether a request was made with the token that it names and is let through by it,
// [Count] counts the cluster before it is let in, and [Acceptor] carries out spec.autoAccept.
//
// # What a token owns
//
// With type ServiceAccount all of it is in the registration namespace and goes with the JoinToken: a ServiceAccount
// "join-<name>", a RoleBinding of the same name to the ClusterRole "muster-bootstrap", and a Secret with the name of
// the token. An agent reads the key "join.yaml" of the Secret. The key "values" contains the same credential as values
// for the Helm chart muster-agent:
//
//	helm install muster-agent deploy/charts/muster-agent --values values.yaml
//
// Deleting the JoinToken ends every copy of the credential, as soon as the API server's cache of tokens expires (10
// seconds).
//
// # Which clusters a token admits
//
// Any cluster, unless spec.clusterID names one. A token that is owned by a MemberCluster, in its
// metadata.ownerReferences, is for that one alone: the hub admits no cluster with it when the MemberCluster is gone,
// and creates no other one.
//
// # How a token ends
//
// A token ends when its time is over or its uses are used up. Requests that are made later are refused, and with
// the last use those of every cluster that was not counted. The Secret then holds no credential any more, only
// the key by which requests that were made in time are still recognized. Copies of the credential die ten
// minutes later, when the ServiceAccount is deleted: a cluster that has just been let in can still fetch its
// answer. Time is told by the API server where it matters to others: a request was made in time if its
// creationTimestamp says so, and no credential is issued that outlasts its token by more than those ten minutes.
//
// # Bootstrap tokens
//
// With type BootstrapToken the credential is a token that a person can type, "<id>.<secret>", as kubeadm has them;
// package discovery makes of it, and of the address of the hub, what an agent needs. Options.BootstrapTokens turns them
// on. Instead of the ServiceAccount there is the Secret kube-system/bootstrap-token-<id>, and the RoleBinding is for
// the user of that one token, "system:bootstrap:<id>". Nothing is bound to its group "system:bootstrappers:muster", by
// which policies and audit logs can tell it. The Secret with join.yaml is the same; its key is made of the token.
//
// A token is prolonged, not replaced: it ends no later than spec.credentialTTLSeconds after the last time that there
// was a hub to prolong it. When the JoinToken ends, the token does not lead to the hub any more, and ten minutes
// later the API server ends it too. Deleting the Secret in kube-system is how to have another secret with the same
// id. The Secret is not owned by the JoinToken, which is in another namespace: the controller deletes it, also when
// it was down while the JoinToken was deleted.
//
// A Secret of that name that an administrator has made before, by kubeadm token create, is adopted: it is never written
// and never deleted, ends when it says so, and its groups get nothing. It must have both usages, or the JoinToken is
// not ready and says which is missing. When it is gone, none is made in its place.
//
// # What bootstrap tokens cost in permissions
//
// The controller needs to get, list, watch, create, update and delete Secrets in kube-system, and RBAC cannot limit
// that to bootstrap tokens: create knows no names, and there are no rules about types. A user who may do that can
// create a token of any ServiceAccount there, which is as good as cluster-admin. So the Role is apart from the
// others, and a hub that has it should have an admission policy which lets the hub's user write Secrets there of type
// bootstrap.kubernetes.io/token alone.
package jointoken
