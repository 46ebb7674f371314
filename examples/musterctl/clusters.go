package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership/admin"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// requestTimeout limits each request, so that a command ends if a cluster does not respond.
const requestTimeout = 10 * time.Second

// hub returns the config of the hub, including the user to impersonate.
func (a *app) hub() (*rest.Config, error) {
	config, err := load("hub", a.hubFile, a.hubContext)
	if err == nil && (a.as != "" || len(a.asGroups) > 0) {
		config.Impersonate = rest.ImpersonationConfig{UserName: a.as, Groups: a.asGroups}
	}
	return config, err
}

// contextNamespace returns the namespace of the context of the hub.
func (a *app) contextNamespace() (string, error) {
	namespace, _, err := clientConfig(a.hubFile, a.hubContext).Namespace()
	if err != nil {
		return "", usage("read the kubeconfig of the hub: %w", err)
	}
	return namespace, nil
}

// member returns the config of the member, from a separate kubeconfig or from another context of the hub's kubeconfig.
func (a *app) member() (*rest.Config, error) {
	file := a.memberFile
	if file == "" {
		file = a.hubFile
	}
	return load("member", file, a.memberContext)
}

// namesMember reports whether the flags specify the member cluster.
func (a *app) namesMember() bool { return a.memberFile != "" || a.memberContext != "" }

func clientConfig(file, kubeContext string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	overrides := &clientcmd.ConfigOverrides{CurrentContext: kubeContext}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

func load(side, file, kubeContext string) (*rest.Config, error) {
	config, err := clientConfig(file, kubeContext).ClientConfig()
	if err != nil {
		return nil, usage("read the kubeconfig of the %s: %w", side, err)
	}
	config.Timeout, config.QPS = requestTimeout, -1
	return config, nil
}

// hubClient returns a client for requests that package admin does not implement.
func (a *app) hubClient() (*hubClient, error) {
	config, err := a.hub()
	if err != nil {
		return nil, err
	}
	c, err := newClient(config)
	return &hubClient{Client: c, server: config.Host}, err
}

// memberClient returns a client for the member that the flags name.
func (a *app) memberClient() (client.Client, error) {
	config, err := a.member()
	if err != nil {
		return nil, err
	}
	return newClient(config)
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), membershipv1alpha1.AddToScheme(scheme),
		placementv1alpha1.AddToScheme(scheme),
		workv1alpha1.AddToScheme(scheme), tenancyv1alpha1.AddToScheme(scheme), addonv1alpha1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// hubClient is a client that returns the same errors as package admin if the hub is unreachable.
type hubClient struct {
	client.Client
	server string
}

func (h *hubClient) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	return h.explain(h.Client.Get(ctx, key, object, options...))
}

func (h *hubClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return h.explain(h.Client.List(ctx, list, options...))
}

func (h *hubClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return h.explain(h.Client.Delete(ctx, object, options...))
}

func (h *hubClient) explain(err error) error {
	if network, is := errors.AsType[*url.Error](err); is {
		return &admin.UnreachableError{Which: admin.Hub, Server: h.server, Err: network.Err}
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster at %s %w", h.server, errNoHub)
	}
	return err
}
