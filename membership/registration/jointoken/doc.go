// Package jointoken keeps JoinTokens: it puts into each one's Secret what an agent needs to ask a hub to join it,
// renews that while the token lasts, and takes it away when the token ends.
//
// [SetupWithManager] adds the controller to a manager. The hub's own controller of JoinRequests uses the
// rest: [Check] tells whether a request was made with the token that it names and is let through by it,
// [Count] counts the cluster before it is let in, and [Acceptor] carries out spec.autoAccept.
//
// # What a token owns
//
// All of it is in the registration namespace and goes with the JoinToken: a ServiceAccount "join-<name>", a
// RoleBinding of the same name to the ClusterRole "muster-bootstrap", and a Secret with the name of the
// token, whose one key "join.yaml" an agent takes as is. Deleting the JoinToken ends every copy of the
// credential, as soon as the API server's cache of tokens forgets it (10 seconds).
//
// # How a token ends
//
// A token ends when its time is over or its uses are used up. Requests that are made later are refused, and with
// the last use those of every cluster that was not counted. The Secret then holds no credential any more, only
// the key by which requests that were made in time are still recognized. Copies of the credential die ten
// minutes later, when the ServiceAccount is deleted: a cluster that has just been let in can still fetch its
// answer. Time is told by the API server where it matters to others: a request was made in time if its
// creationTimestamp says so, and no credential is issued that outlasts its token by more than those ten minutes.
package jointoken
