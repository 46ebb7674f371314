// Package kubeconfig parses the Secrets with which a hub connects to its members, and provides clients whose
// connections follow changes of the Secret.
//
// # Content of a Secret
//
// A Secret contains a kubeconfig in one key, in the format of cluster-api (key "value"), of which the current context
// is used. If that key does not exist, it contains these keys:
//
//   - server: the URL of the member's API server, with the scheme https.
//   - token: a bearer token.
//   - ca.crt: the PEM-encoded certificates that verify the server. Default: those of the system.
//   - tls-server-name: the name to verify in the server's certificate, if it differs from the one in the URL.
//   - proxy-url: a proxy with the scheme http, https or socks5. Default: from the environment of the process.
//   - proxy-headers: a map in YAML or JSON, of headers that are sent to the proxy with CONNECT. It applies to a
//     kubeconfig as well.
//
// # Rejected content
//
// A user with write access to such a Secret must not get access to the hub. Therefore content that makes the hub run a
// program or read one of its files is rejected: a program runs with the permissions of the hub, and a file could be
// the hub's own credential, which would be sent to a server that the writer of the Secret selects. Content that could
// send a credential to the wrong server is also rejected (http, no verification of the server), and content that is
// more than a credential (impersonation, user names and passwords). [Options] permit each of them, for hubs where the
// writers of the Secrets are trusted.
//
// [Parse] returns a [*membership.InvalidError] that names the rejected field and never quotes it.
//
// # Connections that survive a change
//
// [Live] provides configs for long-lived clients and caches. Each request uses the current Access: its address,
// certificate authority, credential and proxy. After a change, old connections are closed, which ends their watches,
// and new ones are opened.
package kubeconfig
