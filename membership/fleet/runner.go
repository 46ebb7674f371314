package fleet

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Connected is a member that the hub has a kubeconfig for.
type Connected struct {
	// Cluster is the member as it was when the runner was called. It is the runner's to keep and must not be changed.
	Cluster *v1alpha1.MemberCluster
	// Config reaches the member by what its Secret says at the time of each request, over connections that the runner shares with nobody: what is
	// made of it, such as clients and caches, outlives each new credential, address and certificate authority. It is the runner's to change.
	Config *rest.Config
}

// A Runner runs on the hub for each member that the hub has a kubeconfig for: what applies works there, or installs an agent.
//
// Run is called in a goroutine of its own when a member's MemberCluster and its Secret are there and the Secret makes sense, whether or not the
// member answers; members are independent of each other. Until the member has answered, and is the right cluster, requests by its Config fail.
//
// Its context ends when either is gone (a member that is being deleted is there until its leave has ended), when spec.kubeConfigSecretRef leads
// nowhere, when spec.joinMode or the UID of the MemberCluster is another one, when the member turns out to be another cluster, and with the fleet. A
// member that has left and whose MemberCluster is kept is still there. Run is then to return within ten seconds, after which its Config works no
// more; it is not called again before it has returned.
//
// When it returns an error, or panics, that is logged and told by an Event, and it is called again after a second, later after half a
// minute. When it returns nil it has ended by itself, and is called again only for what ends its context otherwise.
type Runner interface {
	// Name tells the runner from others; it is shown when the runner fails.
	Name() string
	Run(ctx context.Context, member Connected) error
}
