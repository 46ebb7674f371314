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

// Agent is an add-on whose manifests are created in Go. Other add-ons can be AddonTemplates.
//
// The methods are called concurrently for different members, and repeatedly: they must return the same manifests for
// the same input. A panic is treated as an error. The controllers wait for each call at most [Options].CallTimeout;
// then its context, if it has one, ends, and the result is discarded.
type Agent interface {
	// Name is the name of the Addon.
	Name() string
	// Manifests returns the objects of the add-on on a member, with apiVersion and kind, or of a type in the manager's
	// scheme. The install namespace is created if it is not among them. A Job or Pod with the annotation
	// addon.muster.dev/pre-delete: "true" runs before the removal of the add-on, and not earlier. Images, resources,
	// proxy settings and node placement of AddonConfigs are set afterwards. An error is reported and retried.
	Manifests(ctx context.Context, in Input) ([]client.Object, error)
}

// An [Agent] can implement these interfaces in addition.
type (
	// Versioned agents have new versions of their manifests rolled out like new configurations. Without Versioned,
	// changed manifests reach all members immediately.
	Versioned interface {
		// Version returns the version of the manifests: any text that changes with them.
		Version() string
	}

	// Registrant agents have access to the hub. Nil: no access for this member.
	Registrant interface {
		Registration(in Input) *v1alpha1.TemplateRegistration
	}

	// WorkOptioner agents set how their manifests are applied: the whole spec of the Works except for its manifests.
	WorkOptioner interface {
		WorkOptions(in Input) workv1alpha1.WorkSpec
	}

	// HealthChecker agents report their health themselves if the health of the Addon has the type Custom. Health is
	// called after changes on the hub, and every [HealthPeriod].
	HealthChecker interface {
		Health(ctx context.Context, in Input, works []health.Work) (health.Answer, error)
	}

	// PreDeleter agents act before they are removed from a member. The method is called until it is done, has failed
	// permanently, or the deadline has passed. It must be idempotent and must not wait.
	PreDeleter interface {
		PreDelete(ctx context.Context, in Input) (done bool, err error)
	}

	// ConfigValidator agents validate their configurations of any kind. A member whose configuration is not valid keeps
	// its revision.
	ConfigValidator interface {
		ValidateConfig(config *unstructured.Unstructured) error
	}
)

// Input is the input of an [Agent]. It must not be modified.
type Input struct {
	Addon       *v1alpha1.Addon
	MemberAddon *v1alpha1.MemberAddon
	// Member is the member as observed by the hub. Nil: it is not a member any more. The agent is called again when one
	// of these changes: labels, annotations, spec.claim, whether the member is joined, healthy or leaving, its
	// namespace, status.version, status.properties and status.apis. All other fields, such as status.resources and
	// those that change with heartbeats, can be outdated, and cause no call. Manifests that change with the member
	// reach it immediately, outside of any rollout, unless the member is on hold in a rollout.
	Member *membershipv1alpha1.MemberCluster
	// InstallNamespace is the namespace of the add-on on the member.
	InstallNamespace string
	// Hosting is the place where the agent for the member runs, in a namespace of its own: objects with the annotation
	// addon.muster.dev/location: Hosting are applied there, and all others on the member. The manifests must contain
	// this Namespace. Nil: the agent runs on the member, and all objects are applied there.
	Hosting *v1alpha1.HostingStatus
	// Settings are the merged settings of all AddonConfigs.
	Settings config.Settings
	// Configs are all configurations in their order.
	Configs []*unstructured.Unstructured
}
