package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// defaultMaxRequests is the default of assembly.HubOptions.Membership.MaxRequests for a hub that StartHub starts. It
// allows thousands of members to join at once.
const defaultMaxRequests = 20_000

// timeout limits each wait for the hub. It is generous, because machines that run many tests at once are slow.
const timeout = 2 * time.Minute

// HubOptions are the options of a hub. The zero value is a complete hub without a product.
type HubOptions struct {
	// Assembly are the options of the complete hub. Default of Membership.MaxRequests: 20,000.
	Assembly assembly.HubOptions

	// Setups add the product's controllers to the hub's manager, in this order and after muster's. Default: none.
	Setups []func(manager.Manager) error

	// AddToScheme adds the product's types to the scheme of the manager and of Client. Default: the scheme has the
	// types that assembly.AddToScheme adds.
	AddToScheme func(*runtime.Scheme) error

	// Config is the client configuration of the hub's manager, for example for a user with the roles that the product
	// ships. A user without permission to install CustomResourceDefinitions needs Assembly.SkipDefinitions. Default: the
	// administrator's config.
	Config *rest.Config
}

// A Hub is a complete hub that runs in the process of a test.
type Hub struct {
	t         testing.TB
	config    *rest.Config
	client    client.WithWatch
	scheme    *runtime.Scheme
	stop      func()
	bootstrap *registration.Bootstrap
}

// StartHub installs the CustomResourceDefinitions of muster and starts a complete hub, which runs until the test ends.
// Admin must have the permissions of an administrator of the hub's cluster. If several hubs run on one control plane
// one after the other, each of them finds the objects of the earlier ones.
func StartHub(t testing.TB, admin *rest.Config, o HubOptions) *Hub {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, assembly.AddToScheme(scheme))
	if o.AddToScheme != nil {
		require.NoError(t, o.AddToScheme(scheme))
	}
	if o.Config == nil {
		o.Config = admin
	}
	if o.Assembly.Membership.MaxRequests == 0 {
		o.Assembly.Membership.MaxRequests = defaultMaxRequests
	}
	h := &Hub{
		t: t, config: rest.CopyConfig(admin), scheme: scheme,
		client: mustertest.Client(t, admin, scheme, assembly.InstallHubDefinitions),
	}
	setups := append([]func(manager.Manager) error{func(mgr manager.Manager) error {
		return assembly.SetupHub(t.Context(), mgr, o.Assembly)
	}}, o.Setups...)
	h.stop = mustertest.StartManager(t, o.Config, managerOptions(scheme), setups...)
	return h
}

// managerOptions returns options for one of several managers in a process. Their controllers have equal names, so the
// options skip the validation of names.
func managerOptions(scheme *runtime.Scheme) manager.Options {
	return manager.Options{Scheme: scheme, Controller: config.Controller{SkipNameValidation: new(true)}}
}

// Client returns a client without a cache, with the permissions of an administrator of the hub.
func (h *Hub) Client() client.WithWatch { return h.client }

// Stop stops the hub's manager and waits until it has stopped. The agents continue to run, and the objects of the hub
// remain.
func (h *Hub) Stop() { h.stop() }

// Bootstrap returns a bootstrap credential with which agents join without an administrator's approval. The first call
// creates a JoinToken for the credential. The token is valid until the test ends.
func (h *Hub) Bootstrap() *registration.Bootstrap {
	h.t.Helper()
	if h.bootstrap != nil {
		return h.bootstrap
	}
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, GenerateName: "mustertest-"},
		Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true},
	}
	mustertest.Eventually(h.t, timeout, "create a JoinToken", func() error {
		return h.client.Create(h.t.Context(), token) // The hub creates the namespace and admits tokens after its start.
	})
	h.t.Cleanup(func() { _ = h.client.Delete(context.Background(), token) }) // The plane may have ended.
	mustertest.Eventually(h.t, timeout, "JoinToken "+token.Name+" has a bootstrap credential", func() (err error) {
		var secret corev1.Secret
		if err := h.client.Get(h.t.Context(), client.ObjectKeyFromObject(token), &secret); err != nil {
			return fmt.Errorf("get the Secret of JoinToken %s: %w", token.Name, err)
		}
		h.bootstrap, err = registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
		return err
	})
	return h.bootstrap
}

// healthy returns nil if the member has joined and is healthy.
func (h *Hub) healthy(name string) error {
	var member v1alpha1.MemberCluster
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: name}, &member); err != nil {
		return fmt.Errorf("get MemberCluster %s: %w", name, err)
	}
	return healthy(&member)
}

func healthy(member *v1alpha1.MemberCluster) error {
	for _, c := range member.Status.Conditions {
		switch {
		case c.Type != v1alpha1.ConditionHealthy:
		case c.Status == metav1.ConditionTrue:
			return nil
		default:
			return fmt.Errorf("MemberCluster %s: condition Healthy is %s: %s", member.Name, c.Status, c.Message)
		}
	}
	return fmt.Errorf("MemberCluster %s: condition Healthy is not set", member.Name)
}
