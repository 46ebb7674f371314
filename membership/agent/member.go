package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// pageSize is the page size of lists of the member.
const pageSize = 500

// member is a client for the member's API.
type member struct {
	core      corev1client.CoreV1Interface
	discovery discovery.DiscoveryInterfaceWithContext
	client    *http.Client

	served []v1alpha1.ServedAPIs // the last result; used by that source only
}

// newMember returns a client with the config.
func newMember(config *rest.Config) (*member, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1 // rely on the priority and fairness of the API server
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for the member at %s: %w", config.Host, err)
	}
	core, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("create a client for the member at %s: %w", config.Host, err)
	}
	discovery, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("create a client for the member at %s: %w", config.Host, err)
	}
	return &member{core: core, discovery: discovery, client: client}, nil
}

// close closes idle connections; client-go shares them among all clients of one config.
func (m *member) close() { utilnet.CloseIdleConnectionsFor(m.client.Transport) }

// Names of the built-in collectors.
const (
	sourceVersion    = "version"
	sourceResources  = "resources"
	sourceKubeSystem = "kube-system"
	sourceProperties = "cluster-properties"
	sourceAPIs       = "apis"
)

var builtIn = []string{sourceVersion, sourceResources, sourceKubeSystem, sourceProperties, sourceAPIs}

// sources returns the built-in collectors, followed by those of the user.
func (m *member) sources(o Options) []*source {
	all := []*source{
		{name: sourceVersion, timeout: collectTimeout, collect: m.version},
		{name: sourceResources, timeout: resourceTimeout, collect: m.resources},
		{name: sourceKubeSystem, timeout: collectTimeout, collect: func(ctx context.Context) (finding, error) {
			uid, err := m.kubeSystemUID(ctx)
			return finding{properties: property(PropertyKubeSystemUID, "%s", uid)}, err
		}},
		{name: sourceProperties, timeout: collectTimeout, collect: m.clusterProperties},
	}
	if o.ReportAPIs {
		all = append(all, &source{name: sourceAPIs, timeout: resourceTimeout, collect: m.apis})
	}
	for _, collector := range o.Collectors {
		all = append(all, &source{name: collector.Name(), timeout: collectTimeout,
			collect: func(ctx context.Context) (finding, error) {
				properties, err := collector.Collect(ctx)
				return finding{properties: properties}, err
			}})
	}
	return all
}

// kubeSystemUID returns the UID of the namespace kube-system, which exists as long as its cluster.
func (m *member) kubeSystemUID(ctx context.Context) (string, error) {
	namespace, err := m.core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the member's namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

func (m *member) version(ctx context.Context) (finding, error) {
	raw, err := m.get(ctx, "/version")
	if err != nil {
		return finding{}, fmt.Errorf("read the member's version: %w", err)
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return finding{}, fmt.Errorf("read the member's version: %w", err)
	}
	info.GitVersion = cut(info.GitVersion, maxVersion)
	properties := append(property(PropertyKubernetesVersion, "%s", info.GitVersion),
		property(PropertyProduct, "%s", productOfVersion(info.GitVersion))...)
	return finding{version: info.GitVersion, properties: properties}, nil
}

// resources lists nodes and pods, one page at a time, and returns their sum.
func (m *member) resources(ctx context.Context) (finding, error) {
	t := newTally()
	err := eachPage(metav1.ListOptions{}, func(options metav1.ListOptions) (metav1.ListInterface, error) {
		nodes, err := m.core.Nodes().List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list the member's nodes: %w", err)
		}
		for i := range nodes.Items {
			t.addNode(&nodes.Items[i])
		}
		return nodes, nil
	})
	if err != nil {
		return finding{}, err
	}
	running := metav1.ListOptions{FieldSelector: "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" +
		string(corev1.PodFailed)}
	err = eachPage(running, func(options metav1.ListOptions) (metav1.ListInterface, error) {
		pods, err := m.core.Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list the member's pods: %w", err)
		}
		for i := range pods.Items {
			t.addPod(&pods.Items[i])
		}
		return pods, nil
	})
	properties := append(property(PropertyNodeCount, "%d", t.nodes), t.locations.properties()...)
	return finding{resources: t.sum(), properties: properties}, err
}

func eachPage(options metav1.ListOptions, list func(metav1.ListOptions) (metav1.ListInterface, error)) error {
	options.Limit = pageSize
	for {
		page, err := list(options)
		if err != nil {
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// clusterProperties reads the objects of SIG-Multicluster's About API, if the member has it.
func (m *member) clusterProperties(ctx context.Context) (finding, error) {
	raw, err := m.get(ctx, "/apis/about.k8s.io/v1beta1/clusterproperties?limit=500")
	if apierrors.IsNotFound(err) {
		return finding{}, nil
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				Value string `json:"value"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return finding{}, fmt.Errorf("list the member's ClusterProperties: %w", err)
	}
	var found finding
	for _, item := range list.Items {
		found.properties = append(found.properties, v1alpha1.Property{Name: item.Metadata.Name, Value: item.Spec.Value})
	}
	return found, nil
}

func (m *member) get(ctx context.Context, path string) ([]byte, error) {
	return m.core.RESTClient().Get().RequestURI(path).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
}

// ready returns nil if the member's API server is ready, or is alive and has no readiness endpoint.
func (m *member) ready(ctx context.Context) error {
	var err error
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		if err = m.core.RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error(); !apierrors.IsNotFound(err) {
			break
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the API server does not respond")
	}
	return err
}
