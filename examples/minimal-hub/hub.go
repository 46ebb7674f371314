package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// newScheme returns a scheme with the types of Kubernetes and of muster.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := assembly.AddToScheme(scheme); err != nil {
		panic(err) // Two types have the same name, which is a bug in the program.
	}
	return scheme
}

// runHub runs a complete hub with one add-on. It returns when ctx ends.
func runHub(ctx context.Context, config *rest.Config) error {
	mgr, err := manager.New(config, manager.Options{
		Scheme:  newScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"}, // A product serves its metrics.
	})
	if err != nil {
		return err
	}
	options := assembly.HubOptions{Addons: addon.Options{Agents: []addon.Agent{greeter{}}}}
	if err := assembly.SetupHub(ctx, mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newJoinToken creates a JoinToken. It returns the join.yaml that the hub writes to the Secret of the token, which
// contains everything an agent needs.
func newJoinToken(ctx context.Context, c client.Client, name string, spec v1alpha1.JoinTokenSpec) ([]byte, error) {
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: name},
		Spec:       spec,
	}
	err := until(ctx, 30*time.Second, "JoinToken "+name+" to be taken", func(ctx context.Context) (bool, string) {
		err := client.IgnoreAlreadyExists(c.Create(ctx, token))
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	err = until(ctx, 30*time.Second, "the Secret of JoinToken "+name, func(ctx context.Context) (bool, string) {
		err := c.Get(ctx, client.ObjectKeyFromObject(token), &secret)
		return err == nil && len(secret.Data[registration.BootstrapKey]) > 0, fmt.Sprint(err)
	})
	return secret.Data[registration.BootstrapKey], err
}
