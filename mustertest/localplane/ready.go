package localplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A planeClient checks whether a plane is ready. It has separate connections, so that close leaves no goroutine, unlike
// the shared transports of client-go.
type planeClient struct {
	*kubernetes.Clientset
	transport *http.Transport
}

func newPlaneClient(cfg *rest.Config) (*planeClient, error) {
	tls, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
	clientset, err := kubernetes.NewForConfigAndClient(cfg, &http.Client{Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	return &planeClient{Clientset: clientset, transport: transport}, nil
}

func (c *planeClient) close() { c.transport.CloseIdleConnections() }

// waitForAPIServer waits until /readyz is ok. If etcd ends in the meantime, the error is that of etcd.
func (p *Plane) waitForAPIServer(ctx context.Context, client *planeClient) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return p.running.apiServer.waitUntil(ctx, "/readyz to be ok", func(ctx context.Context) error {
		select {
		case <-p.running.etcd.exited:
			cancel(p.running.etcd.failure(errors.New("ended while the API server needs it")))
		default:
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// waitForControllers waits until the effects of the controllers are visible.
func (p *Plane) waitForControllers(ctx context.Context, client *planeClient) error {
	ready, ctx := errgroup.WithContext(ctx)
	ready.Go(func() error {
		return p.running.controllers[controllerManagerName].waitUntil(ctx, "the default ServiceAccount",
			client.hasDefaultServiceAccount)
	})
	if p.opts.Nodes > 0 {
		ready.Go(func() error {
			if err := client.createNodes(ctx, p.opts.Nodes, p.opts.NodeCapacity); err != nil {
				return err
			}
			return p.running.controllers[kwokName].waitUntil(ctx, "nodes that are ready", client.hasReadyNodes(p.opts.Nodes))
		})
	}
	if err := ready.Wait(); err != nil {
		return err
	}
	// The scheduler has no visible effect yet, so check only that no controller has ended.
	for _, controller := range p.running.controllers {
		if err := controller.ended(); err != nil {
			return err
		}
	}
	return nil
}

// hasDefaultServiceAccount returns nil if the ServiceAccount default exists, which is soon after the start of the
// controller manager.
func (c *planeClient) hasDefaultServiceAccount(ctx context.Context) error {
	_, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func (c *planeClient) createNodes(ctx context.Context, count int, capacity corev1.ResourceList) error {
	for i := range count {
		node := newNode(fmt.Sprintf("node-%d", i), capacity)
		if _, err := c.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
	}
	return nil
}

func newNode(name string, capacity corev1.ResourceList) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// hasReadyNodes returns a check that count nodes are ready and without taints. A new node has taints until the node
// controller observes that it is ready.
func (c *planeClient) hasReadyNodes(count int) func(context.Context) error {
	return func(ctx context.Context) error {
		nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range nodes.Items {
			if isReady(&node) && len(node.Spec.Taints) == 0 {
				ready++
			}
		}
		if ready < count {
			return fmt.Errorf("%d of %d nodes are ready and untainted", ready, count)
		}
		return nil
	}
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
