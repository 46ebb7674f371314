package addon_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/config"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// greeter is an add-on with a greeting on each member: the variable GREETING of its AddonConfigs.
type greeter struct{}

func (greeter) Name() string { return "greeter" }

// Version returns the version. A new version is rolled out in the order and at the rate of the Addon's rollout.
func (greeter) Version() string { return "1.0" }

func (greeter) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	labels := map[string]string{"app": "greeter"}
	return []client.Object{&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: "greeter"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "greeter", Image: "example.com/greeter:1.0",
					Args: []string{in.Settings.Variables["GREETING"], in.Member.Name},
				}}},
			},
		},
	}}, nil
}

// An add-on in Go, and a hub with it. An Addon of the same name selects its members:
//
//	apiVersion: addon.muster.dev/v1alpha1
//	kind: Addon
//	metadata: {name: greeter}
//	spec:
//	  configs: [{group: addon.muster.dev, resource: addonconfigs, defaults: [{namespace: platform, name: greeting}]}]
//	  install: {type: Placements, placements: [{namespace: platform, name: everywhere}]}
func Example() {
	setup := func(mgr manager.Manager) error {
		return addon.SetupWithManager(mgr, addon.Options{Agents: []addon.Agent{greeter{}}})
	}
	_ = setup // with the manager of the hub

	// It needs no cluster to be tested.
	manifests, err := greeter{}.Manifests(context.Background(), addon.Input{
		Member:           &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
		InstallNamespace: "muster-addons",
		Settings:         config.Settings{Variables: map[string]string{"GREETING": "Hello!"}},
	})
	if err != nil {
		panic(err)
	}
	for _, m := range manifests {
		fmt.Println(client.ObjectKeyFromObject(m), m.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args)
	}
	// Output:
	// muster-addons/greeter [Hello! east]
}
