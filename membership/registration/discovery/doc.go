// Package discovery finds a hub by its address and a token that a user can type, like kubeadm join and karmadactl
// register. [Discover] returns the [registration.Bootstrap] of an agent, which is otherwise read from a file,
// join.yaml.
//
// # How a hub is verified
//
// Discover gets the public ConfigMap cluster-info of kube-public over a connection that is not verified. It trusts the
// hub's CA in that ConfigMap if the ConfigMap is signed with the token (a detached JWS by HMAC of the hub's bootstrap
// signer) and the CA is pinned, which means that the hash of its public key is one of Options.CACertHashes. Then it
// gets cluster-info again over a connection that is verified with that CA, and requires the same content. Discover
// never sends a secret: only the agent uses the token.
//
// The signature alone is not sufficient. Every client with a token can sign with it, and all clusters that join with a
// token have it. The steps are those of kubeadm (cmd/kubeadm/app/discovery/token of kubernetes), except that one is
// stricter: kubeadm accepts all certificates of a bundle if one of them is pinned, and this package accepts only the
// pinned ones.
//
// # Requirements for the hub
//
// The hub needs an API server with --enable-bootstrap-token-auth and anonymous requests, a controller manager with the
// controllers bootstrap-signer-controller and token-cleaner-controller, and cluster-info. All hubs that kubeadm has
// created meet these requirements; [Publish] creates cluster-info if it does not exist. The token is that of a
// JoinToken of type BootstrapToken.
package discovery
