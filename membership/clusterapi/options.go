package clusterapi

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ImportLabel of a Cluster requests a MemberCluster if its value is "true".
const ImportLabel = "membership.muster.dev/import"

// ClusterAnnotation of a MemberCluster contains the namespace, the name and the UID of the Cluster for which it was
// created, separated by slashes.
const ClusterAnnotation = "membership.muster.dev/cluster-api-cluster"

// Options are the options of the importer.
type Options struct {
	// Namespaces are the namespaces of the Clusters. Required.
	Namespaces []string

	// Selector selects the Clusters by their labels. Nil: ImportLabel=true.
	Selector labels.Selector

	// JoinMode is the join mode of the members: Push or Install. The hub needs the runner of the mode. Empty: Push.
	JoinMode v1alpha1.JoinMode

	// LeaveDeleted lets a member leave when the deletion of its Cluster was requested. Default false: the member stays
	// until a user deletes its MemberCluster.
	LeaveDeleted bool
}

func (o Options) withDefaults() Options {
	if o.Selector == nil {
		o.Selector = labels.SelectorFromSet(labels.Set{ImportLabel: "true"})
	}
	o.JoinMode = cmp.Or(o.JoinMode, v1alpha1.JoinPush)
	return o
}

func (o Options) validate() error {
	var problems []error
	if len(o.Namespaces) == 0 {
		problems = append(problems, errors.New("clusterapi.Options.Namespaces: name at least one namespace of Clusters"))
	}
	for i, namespace := range o.Namespaces {
		if errs := validation.IsDNS1123Label(namespace); len(errs) > 0 {
			problems = append(problems, fmt.Errorf("clusterapi.Options.Namespaces[%d]: %q is not the name of a namespace: %s",
				i, namespace, strings.Join(errs, "; ")))
		}
	}
	if o.JoinMode != v1alpha1.JoinPush && o.JoinMode != v1alpha1.JoinInstall {
		problems = append(problems, fmt.Errorf("clusterapi.Options.JoinMode: %q is not Push or Install", o.JoinMode))
	}
	return errors.Join(problems...)
}

// SetupWithManager adds the importer to a manager. The manager's scheme must contain membership/v1alpha1, whose
// CustomResourceDefinitions must be served when the manager starts. The importer runs on the leader. It waits while
// the API server has no definition of Clusters.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	i, err := newImporter(mgr, o)
	if err != nil {
		return err
	}
	return mgr.Add(i)
}

func newImporter(mgr manager.Manager, o Options) (*importer, error) {
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("MemberCluster")); err != nil {
		return nil, err
	}
	clusters, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create a client for Clusters: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create a client for discovery: %w", err)
	}
	return &importer{
		Options: o, clusters: clusters, discovery: groups, members: mgr.GetCache(), live: mgr.GetAPIReader(),
		client: mgr.GetClient(), recorder: mgr.GetEventRecorder("muster-cluster-api"),
		log: mgr.GetLogger().WithName("muster-cluster-api"), reported: map[types.NamespacedName]string{},
		rediscover: time.Minute,
	}, nil
}
