package clusterprofile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/requiredkinds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
)

// Defaults of Options.
const (
	DefaultProfileNamespace = "muster-clusters"
	DefaultClusterManager   = "muster"
)

// Options are the options of the export. The zero value is valid.
type Options struct {
	// ProfileNamespace is the namespace with a ClusterProfile of each member. It is created together with the first
	// ClusterProfile if it does not exist. Empty: DefaultProfileNamespace.
	ProfileNamespace string
	// ClusterManager identifies the manager of the ClusterProfiles: it is the value of spec.clusterManager.name and of
	// their label, and the schedulerName of decisions. A product should set its own name and never change it:
	// ClusterProfiles of other managers, and of an earlier name, are not changed. It must be a valid label value. Empty:
	// DefaultClusterManager.
	ClusterManager string
	// AccessProviders are the access providers that ClusterProfiles list, such as [KubeconfigSecretReader]. Providers of
	// other names are not changed. Nil: none.
	AccessProviders []AccessProvider
	// Tenancy adds ClusterProfiles in the namespaces of ClusterSets: a namespace with the label
	// multicluster.x-k8s.io/clusterset and with a ClusterSetBinding of the ClusterSet that is the label's value gets a
	// ClusterProfile for each member of the set. Nil: ClusterProfiles exist in ProfileNamespace only.
	Tenancy Tenancy
	// Clock provides the time. Nil: the system's clock.
	Clock clock.WithTicker
}

// Tenancy decides which members a namespace may use. *Grants of package tenancy implements it. Its methods may be
// called concurrently.
type Tenancy interface {
	// Watch calls changed with each namespace whose rules may have changed, until the caller calls end. It returns when
	// everything that exists was observed. The export writes nothing before.
	Watch(ctx context.Context, changed func(namespace string)) (end func(), err error)
	// Rules returns the rules of a namespace. Nil: no rules were observed.
	Rules(namespace string) *tenancy.Rules
}

func (o Options) withDefaults() Options {
	o.ProfileNamespace = cmp.Or(o.ProfileNamespace, DefaultProfileNamespace)
	o.ClusterManager = cmp.Or(o.ClusterManager, DefaultClusterManager)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

func (o Options) validate() error {
	var problems []error
	if errs := validation.IsDNS1123Label(o.ProfileNamespace); len(errs) > 0 {
		problems = append(problems, fmt.Errorf("clusterprofile.Options.ProfileNamespace: %q is not a valid name of a "+
			"Namespace: %s",
			o.ProfileNamespace, strings.Join(errs, "; ")))
	}
	if errs := validation.IsValidLabelValue(o.ClusterManager); len(errs) > 0 {
		problems = append(problems, fmt.Errorf("clusterprofile.Options.ClusterManager: %q is not a valid label value: %s",
			o.ClusterManager, strings.Join(errs, "; ")))
	}
	names := map[string]bool{}
	for i, provider := range o.AccessProviders {
		field := fmt.Sprintf("clusterprofile.Options.AccessProviders[%d]", i)
		switch {
		case provider.Name == "":
			problems = append(problems, fmt.Errorf("%s.Name: must not be empty", field))
		case names[provider.Name]:
			problems = append(problems, fmt.Errorf("%s.Name: duplicate provider %q", field, provider.Name))
		case provider.Cluster == nil:
			problems = append(problems, fmt.Errorf("%s.Cluster: must not be nil for provider %q", field, provider.Name))
		}
		names[provider.Name] = true
	}
	return errors.Join(problems...)
}

// SetupWithManager adds the export to a manager. It runs on the leader only, and does nothing while the API server
// serves none of the exported kinds. The manager's scheme must have membership/v1alpha1 and placement/v1alpha1, and
// their CustomResourceDefinitions must be served when the manager starts. It does not need the exported kinds.
//
// The permissions are in the folder rbac.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("PlacementDecision"),
		membershipv1alpha1.GroupVersion.WithKind("MemberCluster")); err != nil {
		return err
	}
	// Neither the manager's client nor its cache: both may be limited to namespaces, and would have to know the kinds.
	d, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client for multicluster.x-k8s.io: %w", err)
	}
	m, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client for namespaces: %w", err)
	}
	return mgr.Add(&exporter{
		Options: o, cache: mgr.GetCache(), live: mgr.GetAPIReader(), dynamic: d, changed: make(chan struct{}, 1),
		namespaces: m.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")),
		log:        mgr.GetLogger().WithName("muster-clusterprofile"),
		recorder:   mgr.GetEventRecorder("muster-clusterprofile"),
	})
}
