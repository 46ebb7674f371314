// Package kubeconfig reads the Secrets by which a hub reaches its members, and keeps connections that outlive what is in them.
//
// # What a Secret may say
//
// Either it holds a kubeconfig in one key, as cluster-api writes it (key "value"), of which the current context counts, or, where
// that key is not there, these keys:
//
//   - server: the URL of the member's API server, of scheme https.
//   - token: a bearer token.
//   - ca.crt: the PEM-encoded certificates that the server's is verified by. Without it those of the system count.
//   - tls-server-name: the name to verify in the server's certificate, where that is not the one in the URL.
//   - proxy-url: a proxy of scheme http, https or socks5. Without it the environment of the process says whether there is one.
//   - proxy-headers: a map in YAML or JSON, of headers that are sent to the proxy with CONNECT. It counts for a kubeconfig as well.
//
// # What it may not say
//
// Whoever may write such a Secret should not thereby get at the hub. So whatever has the hub run a program or read a file of its own is
// refused: a program is run with the rights of the hub, and a file could be the hub's own credential, sent to a server of the
// writer's choice. So is what would send a credential to whom it is not meant for (http, no verification of the server), and what is more than a
// credential (impersonation, user names and passwords). [Options] allow each of them where those who write the Secrets are trusted.
//
// [Parse] refuses by a [*membership.InvalidError] that names the field and never quotes it.
//
// # Connections that outlive a Secret
//
// [Live] lends configs from which clients and caches are made once. Each request goes the way that was given last: to its address, with its
// certificate authority, credential and proxy. Connections that were made the old way are closed, by which watches notice, and are
// opened anew.
package kubeconfig
