package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/admin"
)

const (
	hubName, agentName = "muster-hub", "muster-agent"
	// fieldOwner is the field manager of the objects that musterctl deploys.
	fieldOwner = "musterctl"
	// rolloutPoll is the time between two observations of a Deployment.
	rolloutPoll = 500 * time.Millisecond
)

// deployFlags are the flags of commands that deploy a program.
type deployFlags struct {
	image          string
	dryRun         bool
	manifests      bool
	forceConflicts bool
}

func (f *deployFlags) add(cmd *cobra.Command, image string) {
	flags := cmd.Flags()
	flags.StringVar(&f.image, "image", "", image)
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
	flags.BoolVar(&f.forceConflicts, "force-conflicts", false, "replace fields that another tool manages, such as Helm")
}

// addManifests adds the flag --manifests.
func (f *deployFlags) addManifests(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.manifests, "manifests", false, "print the manifests as YAML, and do not connect to the cluster")
}

// validate returns an error that names the invalid flag.
func (f *deployFlags) validate() error {
	switch {
	case f.image == "" && f.manifests:
		return usage("--manifests requires --image")
	case f.image == "" && f.forceConflicts:
		return usage("--force-conflicts requires --image")
	case f.manifests && f.dryRun:
		return usage("--manifests and --dry-run exclude each other")
	default:
		return nil
	}
}

// printManifests prints objects as one YAML stream.
func printManifests(w io.Writer, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}

// Actions of apply.
const (
	actionCreate    = "create"
	actionUpdate    = "update"
	actionUnchanged = "unchanged"
)

// applied is an object with the action that apply has taken, or would take in a dry run.
type applied struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    string `json:"action"`
}

// about returns the result for an object with an action.
func about(object client.Object, action string) applied {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return applied{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Action: action}
}

func appliedTable(objects []applied) table {
	rows := table{header: []string{"KIND", "NAMESPACE", "NAME", "ACTION"}}
	for _, object := range objects {
		rows.add(object.Kind, object.Namespace, object.Name, object.Action)
	}
	return rows
}

// summary counts the objects of each action.
func summary(objects []applied) string {
	var parts []string
	for _, action := range []struct{ name, past string }{
		{actionCreate, "created"}, {actionUpdate, "updated"}, {actionUnchanged, "unchanged"},
	} {
		count := 0
		for _, object := range objects {
			if object.Action == action.name {
				count++
			}
		}
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, action.past))
		}
	}
	return strings.Join(parts, ", ")
}

// apply applies objects in order by server-side apply. It omits CustomResourceDefinitions, because the packages that
// declare them install them and never replace a definition of a newer version. An error names the object. The objects
// before it remain, and the next call continues.
func (f *deployFlags) apply(ctx context.Context, c client.Client,
	objects []*unstructured.Unstructured) ([]applied, error) {
	options := []client.ApplyOption{client.FieldOwner(fieldOwner)}
	if f.forceConflicts {
		options = append(options, client.ForceOwnership)
	}
	if f.dryRun {
		options = append(options, client.DryRunAll)
	}
	var results []applied
	missing := map[string]bool{} // Namespaces that a dry run does not create.
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			continue
		}
		result := about(object, actionCreate)
		doing := fmt.Sprintf("apply %s %s", result.Kind, strings.TrimPrefix(result.Namespace+"/"+result.Name, "/"))
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(object.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(object), current)
		if meta.IsNoMatchError(err) {
			return results, fmt.Errorf("%s: the API server does not know %s: "+
				"install its CustomResourceDefinition, or leave the component out", doing, object.GroupVersionKind())
		}
		if client.IgnoreNotFound(err) != nil {
			return results, fmt.Errorf("%s: %w", doing, err)
		}
		if found := err == nil; !found && f.dryRun {
			missing[result.Name] = missing[result.Name] || result.Kind == "Namespace"
			if missing[result.Namespace] {
				results = append(results, result)
				continue
			}
		} else if found {
			result.Action = actionUpdate
		}
		object = object.DeepCopy()
		switch err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); {
		case apierrors.IsConflict(err):
			return results, fmt.Errorf("%s: another tool manages the fields: use that tool, or add --force-conflicts: %w",
				doing, err)
		case err != nil:
			return results, fmt.Errorf("%s: %w", doing, err)
		}
		if result.Action == actionUpdate && object.GetResourceVersion() == current.GetResourceVersion() {
			result.Action = actionUnchanged
		}
		results = append(results, result)
	}
	return results, nil
}

// rollout reports whether a Deployment runs its current template. If not, pending is the reason.
func rollout(d *appsv1.Deployment) (done bool, pending string) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return false, condition.Message
		}
	}
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return false, "the Deployment controller has not observed the change"
	case d.Status.UpdatedReplicas < want:
		return false, fmt.Sprintf("%d of %d replicas are updated", d.Status.UpdatedReplicas, want)
	case d.Status.Replicas > d.Status.UpdatedReplicas:
		return false, fmt.Sprintf("%d old replicas are pending termination", d.Status.Replicas-d.Status.UpdatedReplicas)
	case d.Status.AvailableReplicas < want:
		return false, fmt.Sprintf("%d of %d replicas are available", d.Status.AvailableReplicas, want)
	default:
		return true, ""
	}
}

// podProblem returns why the first of the Pods is not ready. It returns an empty string if no Pod states a reason.
func podProblem(pods []corev1.Pod) string {
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			switch state := status.State; {
			case state.Waiting != nil && state.Waiting.Reason != "ContainerCreating":
				message := cmp.Or(state.Waiting.Message, "no message")
				return fmt.Sprintf("Pod %s: %s: %s", pod.Name, state.Waiting.Reason, message)
			case state.Terminated != nil && state.Terminated.ExitCode != 0:
				return fmt.Sprintf("Pod %s: the container ended with code %d: %s", pod.Name, state.Terminated.ExitCode,
					cmp.Or(state.Terminated.Message, state.Terminated.Reason))
			}
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return fmt.Sprintf("Pod %s: %s: %s", pod.Name, condition.Reason, condition.Message)
			}
		}
	}
	return ""
}

// rolloutState returns the state of a Deployment. If the Deployment is not available, pending contains the reason of
// its Pods.
func rolloutState(ctx context.Context, c client.Client, key client.ObjectKey) (done bool, pending string, err error) {
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, key, deployment); err != nil {
		return false, "", err
	}
	done, pending = rollout(deployment)
	if done {
		return true, "", nil
	}
	pods := &corev1.PodList{}
	selector := client.MatchingLabels(deployment.Spec.Selector.MatchLabels)
	if err := c.List(ctx, pods, client.InNamespace(key.Namespace), selector); err == nil {
		if problem := podProblem(pods.Items); problem != "" {
			pending += "; " + problem
		}
	}
	return false, pending, nil
}

// waitForRollout waits until a Deployment runs its current template. The error is a [*admin.TimeoutError] that contains
// what is pending.
func waitForRollout(ctx context.Context, c client.Client, key client.ObjectKey, timeout time.Duration,
	progress func(admin.Step),
) error {
	step := admin.Step{Doing: fmt.Sprintf("wait until Deployment %s is available", key)}
	progress(step)
	began := time.Now()
	err := wait.PollUntilContextTimeout(ctx, rolloutPoll, timeout, true, func(ctx context.Context) (bool, error) {
		done, pending, err := rolloutState(ctx, c, key)
		switch {
		case apierrors.IsNotFound(err):
			return false, err
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			pending = err.Error()
		case done:
			return true, nil
		}
		if step.Detail != pending {
			step.Detail = pending
			progress(step)
		}
		return false, nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &admin.TimeoutError{Doing: step.Doing, After: time.Since(began), Reason: cmp.Or(step.Detail, "no observation")}
	case err != nil:
		return fmt.Errorf("%s: %w", step.Doing, err)
	}
	step.Detail, step.Done = "", true
	progress(step)
	return nil
}

// deployedArguments returns the arguments of the only container of a Deployment.
func deployedArguments(ctx context.Context, c client.Client, key client.ObjectKey) ([]string, error) {
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, key, deployment); err != nil {
		return nil, err
	}
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return nil, fmt.Errorf("read Deployment %s: want one container, got %d", key, len(containers))
	}
	return containers[0].Args, nil
}

// additional returns the arguments that the manifests do not contain.
func additional(args, manifests []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return slices.Contains(manifests, arg) })
}

// argumentsOf returns the arguments of the container of the only Deployment among objects.
func argumentsOf(objects []*unstructured.Unstructured) []string {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			if container, ok := container.(map[string]any); ok {
				args, _, _ := unstructured.NestedStringSlice(container, "args")
				return args
			}
		}
	}
	return nil
}
