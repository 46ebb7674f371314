package fleet

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Connected is a member for which the hub has a kubeconfig.
type Connected struct {
	// Cluster is the member at the time of the call. It must not be modified.
	Cluster *v1alpha1.MemberCluster
	// Config connects to the member with the contents of its Secret at the time of each request, over connections that the
	// runner does not share: clients and caches stay valid after a change of credential, address or certificate authority.
	// The runner may modify it.
	Config *rest.Config
}

// A Runner runs on the hub for each member for which the hub has a kubeconfig, for example to apply Works or to install
// an agent.
//
// Run is called in its own goroutine when the MemberCluster and a valid Secret exist, whether or not the member
// responds; members do not affect each other. Requests with its Config fail until the member has responded and its UID
// is verified.
//
// The context ends when either object is deleted (a member that is being deleted exists until its leave has ended),
// when spec.kubeConfigSecretRef is removed or invalid, when spec.joinMode or the UID of the MemberCluster changes,
// when the member is recognized as another cluster, and when the fleet ends. A member that has left and whose
// MemberCluster is kept still exists. Run must then return within ten seconds, after which its Config does not work
// any more. It is not called again before it has returned.
//
// If Run returns an error or panics, the error is logged and reported by an Event, and Run is called again after one
// second, later after half a minute. If Run returns nil, it is called again only after an event that ends its context.
type Runner interface {
	// Name identifies the runner in logs, Events and metrics.
	Name() string
	Run(ctx context.Context, member Connected) error
}
