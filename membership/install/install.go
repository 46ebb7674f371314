package install

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A Target is a member that an agent is to be installed on, or removed from. It is the installer's to keep and, but for Config, must not be changed.
type Target struct {
	// Cluster is the member as the hub knows it. Its spec.clusterID is set, and the agent has to say the same.
	Cluster *v1alpha1.MemberCluster
	// Config reaches the member by its kubeConfigSecretRef. It is the installer's to change.
	Config *rest.Config
	// Bootstrap is what the agent needs to ask the hub, with the hub's Server and CA: a secret, though it does not show when it is printed. Its Marshal is
	// what an agent takes as the Secret muster-bootstrap. Nil where an agent is to be removed.
	Bootstrap *registration.Bootstrap
}

// An Installer brings an agent to a member. Its methods may be called concurrently, for different members.
//
// Install must be idempotent: it is called again after it has failed, or the hub was killed while it ran, and to install the agent anew. It must
// leave alone what the agent itself remembers (the Secret muster-agent), which is the member's identity. It has until its context ends and need not wait
// for the agent to run. What its error says is shown to administrators, so it must not quote a secret.
//
// It may also be an [Uninstaller], a [Reviser] and a [Checker].
type Installer interface {
	Install(ctx context.Context, target Target) error
}

// An Uninstaller is an [Installer] that removes what it has installed. Uninstall is called when the agent of a member that leaves has confirmed
// that the member is clean, or was never there. It must be idempotent, and returns when
// nothing of it runs any more.
type Uninstaller interface {
	Uninstall(ctx context.Context, target Target) error
}

// A Reviser is an [Installer] that says what it would install. Where that is another string than it was, agents are installed anew.
type Reviser interface {
	Revision() string
}

// A Checker is an [Installer] that sees whether what it has installed runs on a member. Missing says what does not, for an administrator; empty: all of it
// runs, as it was installed last. It is asked about agents that were installed anew and are heard, every ten seconds until they are healthy.
type Checker interface {
	Missing(ctx context.Context, target Target) (string, error)
}

// Func makes an [Installer] of a function.
type Func func(ctx context.Context, target Target) error

// Install calls the function.
func (f Func) Install(ctx context.Context, target Target) error { return f(ctx, target) }
