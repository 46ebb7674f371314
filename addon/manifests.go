package addon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/bundle"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// manifests are the rendered objects of an add-on for a member.
type manifests struct {
	part              // for the member itself
	hosting      part // for the hosting member
	registration *v1alpha1.TemplateRegistration
}

// part are the objects for one cluster.
type part struct {
	objects, hooks []bundle.Object
	spec           workv1alpha1.WorkSpec // without the manifests
}

// errNoAgent is the error of an add-on whose manifests have no source.
var errNoAgent = errors.New("the hub has no agent in Go with this name, and the configs contain no AddonTemplate: " +
	"add an AddonTemplate, or register the agent with addon.Options.Agents")

// manifests returns the manifests of an add-on for a member, from its template or its agent.
func (c *shared) manifests(ctx context.Context, in *Input, of *content) (*manifests, error) {
	if agent := c.agents[in.Addon.Name]; agent != nil {
		return c.callAgent(ctx, agent, in)
	}
	if of.template == nil {
		return nil, errNoAgent
	}
	out, err := template.Render(&of.template.Spec, template.Input{
		Cluster: in.Member.Name, Addon: in.Addon.Name, InstallNamespace: in.InstallNamespace,
		HostingNamespace: hostingNamespace(in), Settings: in.Settings,
	})
	if err != nil {
		return nil, fmt.Errorf("AddonTemplate %s: %w", of.template.Name, err)
	}
	made := &manifests{registration: out.Registration}
	if made.part, err = rendered(&of.template.Spec, &out.Part); err != nil {
		return nil, fmt.Errorf("AddonTemplate %s: %w", of.template.Name, err)
	}
	if made.hosting, err = rendered(&of.template.Spec, &out.Hosting); err != nil {
		return nil, fmt.Errorf("AddonTemplate %s: %w", of.template.Name, err)
	}
	return made, nil
}

func rendered(spec *v1alpha1.AddonTemplateSpec, from *template.Part) (made part, err error) {
	made.spec = workv1alpha1.WorkSpec{Apply: spec.Apply, ManifestOptions: from.Options, Waves: spec.Waves,
		Executor: spec.Executor}
	if made.objects, err = toBundleObjects(from.Objects); err != nil {
		return part{}, err
	}
	made.hooks, err = toBundleObjects(from.Hooks)
	return made, err
}

// callAgent calls an agent in Go.
func (c *shared) callAgent(ctx context.Context, agent Agent, in *Input) (*manifests, error) {
	call := func(function string) calls.Key {
		return callOf(client.ObjectKeyFromObject(in.MemberAddon), in.Addon.Name, function)
	}
	objects, err := calls.Do(ctx, c.calls, call("Manifests"), func(ctx context.Context) ([]client.Object, error) {
		return agent.Manifests(ctx, *in)
	})
	if err != nil {
		return nil, err
	}
	made := &manifests{}
	if options, is := agent.(WorkOptioner); is {
		made.spec, err = calls.Do(ctx, c.calls, call("WorkOptions"), func(context.Context) (workv1alpha1.WorkSpec, error) {
			return options.WorkOptions(*in), nil
		})
		if err != nil {
			return nil, err
		}
		made.spec.Manifests = nil
		made.hosting.spec = made.spec
	}
	if registrant, is := agent.(Registrant); is {
		made.registration,
			err = calls.Do(ctx, c.calls, call("Registration"), func(context.Context) (*v1alpha1.TemplateRegistration, error) {
			return registrant.Registration(*in), nil
		})
		if err != nil {
			return nil, err
		}
	}
	kinds := map[*[]bundle.Object][]*unstructured.Unstructured{}
	for i, object := range objects {
		u, err := c.convert(object)
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %w", i, err)
		}
		to, err := made.placeOf(u, in)
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %s %s: %w", i, u.GetKind(), u.GetName(), err)
		}
		kinds[to] = append(kinds[to], u)
	}
	own, hosted := &made.objects, &made.hosting.objects
	if len(kinds[own]) > 0 || made.registration != nil && in.Hosting == nil {
		kinds[own] = template.WithNamespace(kinds[own], in.InstallNamespace)
	}
	if in.Hosting != nil && (len(kinds[hosted]) > 0 || made.registration != nil) {
		kinds[hosted] = template.WithNamespace(kinds[hosted], in.Hosting.Namespace)
	}
	for _, to := range []*[]bundle.Object{own, &made.hooks, hosted, &made.hosting.hooks} {
		set, err := in.Settings.Apply(kinds[to])
		if err != nil {
			return nil, err
		}
		if *to, err = toBundleObjects(set); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// placeOf returns the list to which an object of an agent in Go belongs according to its annotations.
func (m *manifests) placeOf(u *unstructured.Unstructured, in *Input) (*[]bundle.Object, error) {
	annotations, to := u.GetAnnotations(), &m.part
	switch where := annotations[v1alpha1.LocationAnnotation]; where {
	case "", v1alpha1.LocationMember:
	case v1alpha1.LocationHosting:
		if in.Hosting != nil {
			to = &m.hosting
		}
	default:
		return nil, fmt.Errorf("annotation %s must be %s or %s, got %q", v1alpha1.LocationAnnotation,
			v1alpha1.LocationMember, v1alpha1.LocationHosting, where)
	}
	if annotations[v1alpha1.PreDeleteAnnotation] == "true" {
		return &to.hooks, nil
	}
	return &to.objects, nil
}

// convert converts an object and removes the fields that only an API server writes.
func (c *shared) convert(object client.Object) (*unstructured.Unstructured, error) {
	if object == nil {
		return nil, errors.New("must not be nil")
	}
	kind, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	return u, nil
}

func toBundleObjects(objects []*unstructured.Unstructured) ([]bundle.Object, error) {
	made := make([]bundle.Object, 0, len(objects))
	for _, u := range objects {
		text, err := json.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		o, err := bundle.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		made = append(made, o)
	}
	return made, nil
}
