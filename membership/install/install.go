package install

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A Target is a member on which an agent is installed or removed. The installer may keep it, and must not modify it
// except Config.
type Target struct {
	// Cluster is the MemberCluster. Its spec.clusterID is set, and the agent must use the same cluster ID.
	Cluster *v1alpha1.MemberCluster
	// Config connects to the member with its kubeConfigSecretRef. The installer may modify it.
	Config *rest.Config
	// Bootstrap is the agent's bootstrap credential, with the hub's Server and CA. It is a secret, and hidden when it is
	// printed. Its Marshal returns the content of the Secret muster-bootstrap. Nil for a removal.
	Bootstrap *registration.Bootstrap
}

// An Installer installs an agent on a member. Its methods may be called concurrently for different members.
//
// Install must be idempotent: it is called again after a failure, after the hub was killed while it ran, and to
// install the agent again. It must not change the agent's record (the Secret muster-agent), which contains the
// member's identity. It must return when its context ends, and need not wait for the agent to run. Its error is shown
// to administrators, so it must not quote a secret.
//
// An Installer may also implement [Uninstaller], [Reviser] and [Checker].
type Installer interface {
	Install(ctx context.Context, target Target) error
}

// An Uninstaller is an [Installer] that can remove the objects that it has installed. Uninstall is called when the
// agent of a leaving member has confirmed that the member is clean, or has never joined. It must be idempotent, and
// must return only when none of the installed workloads runs any more.
type Uninstaller interface {
	Uninstall(ctx context.Context, target Target) error
}

// A Reviser is an [Installer] with a revision of the objects that it installs. If the revision changes, agents are
// installed again.
type Reviser interface {
	Revision() string
}

// A Checker is an [Installer] that can check whether the installed workloads run on a member. Missing returns a
// message about what does not run, for an administrator; empty: everything runs as last installed. It is called for
// agents that were installed again and send heartbeats, every ten seconds until they are healthy.
type Checker interface {
	Missing(ctx context.Context, target Target) (string, error)
}

// Func is an [Installer] that calls a function.
type Func func(ctx context.Context, target Target) error

// Install calls the function.
func (f Func) Install(ctx context.Context, target Target) error { return f(ctx, target) }
