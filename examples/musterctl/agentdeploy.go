package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/admin"
)

// agentFlags are the flags of register that deploy the agent.
type agentFlags struct {
	deployFlags
	clusterName   string
	labels        map[string]string
	applyAnything bool
	method        string
}

// agentMethods are the values of --method.
var agentMethods = []string{"token", "csr", "identity"}

// arguments returns the arguments of the agent that the flags set, in a stable order.
func (f *agentFlags) arguments() []string {
	var arguments []string
	if f.clusterName != "" {
		arguments = append(arguments, "--name="+f.clusterName)
	}
	if f.method != "" {
		arguments = append(arguments, "--method="+f.method)
	}
	for _, key := range slices.Sorted(maps.Keys(f.labels)) {
		arguments = append(arguments, "--label="+key+"="+f.labels[key])
	}
	return arguments
}

func (f *agentFlags) validate(hub string, works bool) error {
	switch {
	case f.image == "" && (f.clusterName != "" || len(f.labels) > 0 || f.applyAnything || f.method != ""):
		return usage("--cluster-name, --labels, --method and --apply-anything require --image: they configure the agent " +
			"that register deploys")
	case f.method != "" && !slices.Contains(agentMethods, f.method):
		return usage("--method must be one of %s, got %s", strings.Join(agentMethods, ", "), f.method)
	case f.image != "" && hub != "":
		return usage("--image cannot be combined with --hub: deploy an agent of several hubs with the chart or with " +
			"kustomize")
	case f.applyAnything && !works:
		return usage("--apply-anything requires --works")
	default:
		return f.deployFlags.validate()
	}
}

// agentObjects returns the manifests of an agent.
func agentObjects(c deploy.Customization, works, applyAnything bool) ([]*unstructured.Unstructured, error) {
	overlay := string(deploy.Membership)
	if works {
		overlay = string(deploy.Singleton)
	}
	var components []string
	if applyAnything {
		components = append(components, "apply-anything")
	}
	objects, err := deploy.Objects(overlay, components...)
	if err != nil {
		return nil, err
	}
	return deploy.Customize(objects, c)
}

// deployAgent returns a function that deploys the objects of an agent and reports that to progress.
func (f *agentFlags) deployAgent(objects []*unstructured.Unstructured, progress func(admin.Step),
) func(context.Context, client.Client) error {
	return func(ctx context.Context, member client.Client) error {
		step := admin.Step{Doing: "deploy the agent"}
		progress(step)
		results, err := f.apply(ctx, member, objects)
		if err != nil {
			return err
		}
		step.Detail, step.Done = summary(results), true
		progress(step)
		return nil
	}
}

// noteRollout prints why the Deployment of the agent is not available, if that explains why the agent has not joined.
func (a *app) noteRollout(ctx context.Context, member client.Client, namespace string, err error) {
	if _, timeout := errors.AsType[*admin.TimeoutError](err); !timeout {
		return
	}
	key := client.ObjectKey{Namespace: namespace, Name: agentName}
	if done, pending, err := rolloutState(ctx, member, key); err == nil && !done {
		a.note("Deployment %s is not available: %s.", key, pending)
	}
}
