package addon

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Agent is an add-on whose manifests are made in Go. An add-on that has none can be an AddonTemplate instead.
//
// It may be called for many members at once, and is called again and again: the same input must give the same manifests. What it panics
// with is an error. No function of it is waited for longer than [Options].CallTimeout: its context, if it has one, ends then, and what it still returns
// is lost.
type Agent interface {
	// Name is that of the Addon.
	Name() string
	// Manifests are what the add-on consists of on a member, with apiVersion and kind, or of a type that the manager's scheme knows. The install
	// namespace is made if it is not among them. A Job or Pod with the annotation addon.muster.dev/pre-delete: "true" runs before the add-on is
	// removed, and not before. Images, resources, proxy and node placement of AddonConfigs are put into them afterwards. An error is told of and
	// tried again.
	Manifests(ctx context.Context, in Input) ([]client.Object, error)
}

// What more an [Agent] may be.
type (
	// Versioned agents have a new version rolled out as a new configuration is. Without, other manifests reach all members at once.
	Versioned interface {
		// Version of the manifests: any text that changes with them.
		Version() string
	}

	// Registrant agents have access to the hub. Nil: on this member it has none.
	Registrant interface {
		Registration(in Input) *v1alpha1.TemplateRegistration
	}

	// WorkOptioner agents say how their manifests are applied: all of the spec but its manifests counts.
	WorkOptioner interface {
		WorkOptions(in Input) workv1alpha1.WorkSpec
	}

	// HealthChecker agents tell their health themselves, where the Addon's health has the type Custom. It is asked when something changes on the
	// hub, and every [HealthPeriod].
	HealthChecker interface {
		Health(ctx context.Context, in Input, works []health.Work) (health.Answer, error)
	}

	// PreDeleter agents do something on their own before they are removed from a member. It is asked again until it is done, has failed for good, or the
	// deadline has passed. It must be idempotent, and must not wait.
	PreDeleter interface {
		PreDelete(ctx context.Context, in Input) (done bool, err error)
	}

	// ConfigValidator agents say what is wrong with a configuration of theirs, whatever its kind. A member whose configuration is not valid keeps what it has.
	ConfigValidator interface {
		ValidateConfig(config *unstructured.Unstructured) error
	}
)

// Input is what an [Agent] is asked about. It must not be changed.
type Input struct {
	Addon       *v1alpha1.Addon
	MemberAddon *v1alpha1.MemberAddon
	// Member as the hub knows it; nil: it is none any more. The agent is asked again when one of these changes: labels, annotations, spec.claim, whether it is
	// joined, healthy or about to leave, its namespace, status.version, status.properties and status.apis. All else, such as status.resources and what comes with
	// heartbeats, it finds as it was at the time, and brings no call. What other manifests follow from a changed member reach it at once, outside of any rollout,
	// unless the rollout holds it.
	Member *membershipv1alpha1.MemberCluster
	// InstallNamespace is where the add-on is on the member.
	InstallNamespace string
	// Hosting is where the agent for the member runs, in a namespace that is no other agent's: objects with the annotation
	// addon.muster.dev/location: Hosting go there, and all others to the member. That Namespace
	// is for the agent to bring, as any. Nil: it runs on the member, and all goes there.
	Hosting *v1alpha1.HostingStatus
	// Settings are what the AddonConfigs that count say together.
	Settings config.Settings
	// Configs are all configurations that count, in their order.
	Configs []*unstructured.Unstructured
}
