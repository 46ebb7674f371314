package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requestTimeout is the default timeout of a request.
const requestTimeout = 10 * time.Second

// cluster is the hub or the member.
type cluster struct {
	client.Client
	side   Side
	config *rest.Config
}

// connect creates a client without sending a request.
func connect(side Side, config *rest.Config) (*cluster, error) {
	if config == nil {
		return nil, fmt.Errorf("there is no config for the %s", side)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	config.QPS = -1 // the API server limits requests; a client-side limit would delay a wait
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client of the %s: %w", side, err)
	}
	return &cluster{Client: c, side: side, config: config}, nil
}

// id returns the UID of the namespace kube-system, which identifies a cluster.
func (c *cluster) id(ctx context.Context) (string, error) {
	var namespace corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", c.explain("read namespace "+metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// found returns the object, or nil if it does not exist.
func found[O client.Object](ctx context.Context, c *cluster, key client.ObjectKey, object O) (O, error) {
	var none O
	err := c.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, c.explain(fmt.Sprintf("read %s %s", kindOf(c, object), display(key)), err)
	}
	return object, nil
}

// create creates an object unless it exists.
func (c *cluster) create(ctx context.Context, object client.Object) error {
	err := c.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return c.explain(fmt.Sprintf("create %s %s", kindOf(c, object), display(client.ObjectKeyFromObject(object))), err)
}

// remove deletes an object if it has not changed since it was read. A missing object is not an error.
func (c *cluster) remove(ctx context.Context, object client.Object) error {
	return c.delete(ctx, object, precondition.Unchanged(object))
}

// removeRequested deletes an object whose deletion the user requests by the call, or that the call has created. The
// UID is the only precondition: controllers may write the object at any time, and the request does not depend on these
// writes.
func (c *cluster) removeRequested(ctx context.Context, object client.Object) error {
	return c.delete(ctx, object, client.Preconditions{UID: new(object.GetUID())})
}

func (c *cluster) delete(ctx context.Context, object client.Object, unchanged client.Preconditions) error {
	err := c.Delete(ctx, object, unchanged, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.explain(fmt.Sprintf("delete %s %s", kindOf(c, object), display(client.ObjectKeyFromObject(object))), err)
}

func kindOf(c *cluster, object client.Object) string {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return "object"
	}
	return gvk.Kind
}

func display(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}
