// Package bootstrapsecret keeps the Secrets that bootstrap tokens are in a hub's kube-system: those that it makes for
// JoinTokens, and, without ever writing to them, those that administrators made with kubeadm.
//
// A Secret of kube-system cannot be owned by a JoinToken of another namespace, so no garbage collector sees to it: it
// bears the name and the UID of its JoinToken, and the expiration that it always has ends it when there is no hub any
// more.
package bootstrapsecret
