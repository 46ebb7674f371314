package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon"
	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
)

// greeter is an add-on with a Deployment on each selected member. The environment variable GREETING contains its
// greeting.
type greeter struct{}

func (greeter) Name() string { return "greeter" }

func (greeter) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	labels := map[string]string{"app": "greeter"}
	return []client.Object{&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: "greeter"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "greeter", Image: "registry.k8s.io/pause:3.10", Args: []string{in.Settings.Variables["GREETING"],
						in.Member.Name},
				}}},
			},
		},
	}}, nil
}

// greetingAddon is the Addon. It installs the add-on on the members that the Placement of the shop has selected, and
// uses the AddonConfig greeting as the default configuration.
const greetingAddon = `
metadata: {name: greeter}
spec:
  configs:
  - {group: addon.muster.dev, resource: addonconfigs, defaults: [{namespace: apps, name: greeting}]}
  install: {type: Placements, placements: [{namespace: apps, name: shop}]}
`

// how is the AddonConfig with the greeting.
const how = `
metadata: {name: greeting, namespace: apps}
spec: {variables: [{name: GREETING, value: Welcome!}]}
`

// install makes the hub install the add-on, and then changes the greeting.
func (f *fleet) install(ctx context.Context) error {
	greeting, greets := &addonv1alpha1.AddonConfig{}, &addonv1alpha1.Addon{}
	for object, text := range map[client.Object]string{greets: greetingAddon, greeting: how} {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			return fmt.Errorf("read the %T: %w", object, err)
		}
		if err := f.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create the %T: %w", object, err)
		}
	}
	m, err := f.untilAvailable(ctx, func(*member) bool { return true })
	if err != nil {
		return err
	}
	if err := f.untilGreeted(ctx, m, "Welcome!"); err != nil {
		return err
	}
	greeting.Spec.Variables[0].Value = "Come in!"
	changed := time.Now()
	if err := f.client.Update(ctx, greeting); err != nil {
		return fmt.Errorf("change AddonConfig %s: %w", greeting.Name, err)
	}
	if err := f.untilGreeted(ctx, m, "Come in!"); err != nil {
		return err
	}
	say("      the AddonConfig was changed, and %s greeted in other words %s later", m.name,
		time.Since(changed).Round(time.Millisecond))
	return f.show(ctx)
}

// untilGreeted waits until the member with the shop has the add-on with this greeting, and the hub reports that the
// add-on is available.
func (f *fleet) untilGreeted(ctx context.Context, m *member, words string) error {
	return until(ctx, timeLimit, m.name+" to greet: "+words, func(ctx context.Context) (bool, string) {
		greets, deployment := &addonv1alpha1.Addon{}, &appsv1.Deployment{}
		if err := f.client.Get(ctx, client.ObjectKey{Name: "greeter"}, greets); err != nil {
			return false, err.Error()
		}
		if err := m.client.Get(ctx, client.ObjectKey{Namespace: greets.Spec.InstallNamespace, Name: "greeter"},
			deployment); err != nil {
			return false, err.Error()
		}
		installed := meta.IsStatusConditionTrue(greets.Status.Conditions, addonv1alpha1.ConditionInstalled) &&
			greets.Status.Counts.Available == 1
		return installed && deployment.Spec.Template.Spec.Containers[0].Args[0] == words, orDash(greets.Status.Message)
	})
}

// uninstall deletes the Addon and waits until it is deleted, which is after all members have removed the add-on.
func (f *fleet) uninstall(ctx context.Context) error {
	greets := &addonv1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "greeter"}}
	if err := f.client.Delete(ctx, greets); err != nil {
		return fmt.Errorf("delete Addon %s: %w", greets.Name, err)
	}
	return until(ctx, timeLimit, "Addon greeter to be gone", func(ctx context.Context) (bool, string) {
		err := f.client.Get(ctx, client.ObjectKeyFromObject(greets), greets)
		return apierrors.IsNotFound(err), fmt.Sprintf("%s (%v)", orDash(greets.Status.Message), err)
	})
}

// installed returns a line with the status of the add-on.
func (f *fleet) installed(ctx context.Context) string {
	greets := &addonv1alpha1.Addon{}
	if f.client.Get(ctx, client.ObjectKey{Name: "greeter"}, greets) != nil {
		return ""
	}
	return fmt.Sprintf("Addon greeter: %s\n", orDash(greets.Status.Message))
}
