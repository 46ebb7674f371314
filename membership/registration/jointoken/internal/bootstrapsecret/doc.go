// Package bootstrapsecret manages the Secrets with bootstrap tokens in the namespace kube-system of a hub: it creates
// and updates those of JoinTokens, and only reads those that administrators have created with kubeadm.
//
// A JoinToken cannot own a Secret in another namespace, so the garbage collector does not delete the Secret. Therefore
// the Secret contains the name and the UID of its JoinToken, and always an expiration, so that it expires if the hub
// does not exist any more.
package bootstrapsecret
