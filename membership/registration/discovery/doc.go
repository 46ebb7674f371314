// Package discovery finds a hub by its address and a token that a person can type, as kubeadm join and karmadactl register
// do: [Discover] makes of them the [registration.Bootstrap] that an agent takes, which otherwise comes in a file, join.yaml.
//
// # How a hub is trusted
//
// Discover gets the ConfigMap cluster-info of kube-public, which anybody may read, over a connection to whoever answers.
// It believes what is in there, the hub's CA, when it is signed with the token (a detached JWS by HMAC, which the
// hub's bootstrap signer puts there) and when the CA is pinned: when the hash of its public key is one of Options.CACertHashes. Then
// it gets cluster-info again over a connection that is verified by that CA, and wants to find the same. Until then it
// has sent nothing that is secret, and afterwards neither: only the agent uses the token.
//
// The signature alone would not do. Whoever knows a token can sign with it, and a token is known to all who join with it. The
// steps are those of kubeadm (cmd/kubeadm/app/discovery/token of kubernetes), and one is stricter: kubeadm takes all of a
// bundle of CAs when one of them is pinned, and this takes those that are.
//
// # What a hub needs
//
// An API server with --enable-bootstrap-token-auth and anonymous requests, a controller manager with the controllers
// bootstrap-signer-controller and token-cleaner-controller, and cluster-info. All hubs that kubeadm has made are like that;
// [Publish] makes cluster-info where there is none. The token is that of a JoinToken of type BootstrapToken.
package discovery
