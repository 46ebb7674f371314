package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// collector is the add-on in Go. It collects the logs of each member by the rules of a ConfigMap on the hub, and sends
// them to the endpoint that an AddonConfig names.
type collector struct {
	version string
	// received returns the number of lines that arrived from a member in the last minute. A product would query its own
	// store.
	received func(ctx context.Context, member string) (int, error)
}

var _ interface { // the implemented interfaces
	addon.Agent
	addon.Versioned
	addon.ConfigValidator
	addon.HealthChecker
} = collector{}

func (collector) Name() string { return "collector" }

// Version returns the version of the manifests. The rollout of the Addon updates the members to a new version one by
// one. Without Version, all members would receive changed manifests at the same time.
func (c collector) Version() string { return c.version }

// Manifests returns the objects that the add-on installs on each member.
func (c collector) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	meta := metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: "collector"}
	rules := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"endpoint": in.Settings.Variables["ENDPOINT"]}}
	for _, config := range in.Configs {
		if config.GetKind() == "ConfigMap" {
			rules.Data["rules"], _, _ = unstructured.NestedString(config.Object, "data", "rules")
		}
	}
	labels := map[string]string{"app": "collector"}
	collects := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: c.pod()},
	}}
	// The Job sends the remaining logs before the collector is removed. It runs at no other time.
	flush := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.InstallNamespace, Name: "collector-flush",
			Annotations: map[string]string{v1alpha1.PreDeleteAnnotation: "true"},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: c.pod()}},
	}
	flush.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return []client.Object{rules, collects, flush}, nil
}

func (c collector) pod() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "collector", Image: "registry.k8s.io/pause:3.10", Env: []corev1.EnvVar{{Name: "VERSION", Value: c.version}},
	}}}
}

// ValidateConfig rejects a configuration that would collect nothing. A member with an invalid configuration keeps its
// current manifests.
func (collector) ValidateConfig(config *unstructured.Unstructured) error {
	if config.GetKind() != "ConfigMap" {
		return nil
	}
	if rules, _, _ := unstructured.NestedString(config.Object, "data", "rules"); rules == "" {
		return errors.New("data.rules is required, such as rules: pods")
	}
	return nil
}

// Health returns the health that the rollout evaluates. A release whose Works are available but whose collectors send
// no logs has failed. The works are those on the member, which may still be of another version.
func (c collector) Health(ctx context.Context, in addon.Input, works []health.Work) (health.Answer, error) {
	for _, w := range works {
		if w.Observed != w.Generation || w.Available != metav1.ConditionTrue {
			return health.Answer{Health: rollout.Progressing, Message: w.Message}, nil
		}
	}
	lines, err := c.received(ctx, in.Member.Name)
	switch {
	case err != nil:
		return health.Answer{}, err
	case lines == 0:
		return health.Answer{Health: rollout.Failed, Message: "It runs, and sends nothing."}, nil
	}
	return health.Answer{Health: rollout.Succeeded, Message: fmt.Sprintf("It sends %d lines a minute.", lines)}, nil
}
