package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// ErrInvalid is the error of a configuration that is invalid for all manifests. The reason of the condition is
// [v1alpha1.ReasonConfigInvalid].
var ErrInvalid = errors.New("invalid configuration")

// Apply returns the objects with the settings applied to their pod templates, in the same order; see the package
// documentation. The arguments are not modified: objects with pods are copied, and others are returned as they are. A
// second application of the same settings changes nothing, except for registries as documented.
//
// The error is [ErrInvalid], or names each object in which a field has an unexpected type, for example an env that is
// not a list. With an error there is no result.
func (s *Settings) Apply(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	c, err := s.compile()
	if err != nil {
		return nil, err
	}
	out := slices.Clone(objects)
	if c.isEmpty() {
		return out, nil
	}
	var errs []error
	for i, object := range objects {
		path := podsOf[object.GroupVersionKind().GroupKind()]
		if path == nil {
			continue
		}
		out[i] = object.DeepCopy()
		if err := c.configureAt(path, workload{object.GetKind(), object.GetName()}, out[i].Object); err != nil {
			errs = append(errs, fmt.Errorf("configure %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// compiled are settings in the form in which they are applied to objects.
type compiled struct {
	nodeSelector map[string]string
	tolerations  []map[string]any
	registries   []registry
	proxy        []variable
	resources    []resources
}

// variable is an environment variable, with its name in lower case.
type variable struct{ name, lower, value string }

type workload struct{ kind, name string }

// resources apply to matching containers; "*" and an empty container match all.
type resources struct {
	workload
	container string
	values    map[string]any
}

func (s *Settings) compile() (*compiled, error) {
	registries, err := registriesOf(s.Registries)
	if err != nil {
		return nil, err
	}
	c := &compiled{registries: registries}
	if s.NodePlacement != nil {
		c.nodeSelector = s.NodePlacement.NodeSelector
		for i := range s.NodePlacement.Tolerations {
			toleration, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.NodePlacement.Tolerations[i])
			if err != nil {
				return nil, fmt.Errorf("%w: toleration: %w", ErrInvalid, err)
			}
			c.tolerations = append(c.tolerations, toleration)
		}
	}
	if s.Proxy != nil {
		c.proxy = []variable{
			{"HTTP_PROXY", "http_proxy", s.Proxy.HTTP},
			{"HTTPS_PROXY", "https_proxy", s.Proxy.HTTPS},
			{"NO_PROXY", "no_proxy", s.Proxy.NoProxy},
		}
		c.proxy = slices.DeleteFunc(c.proxy, func(v variable) bool { return v.value == "" })
	}
	for i := range s.Resources {
		r, err := resourcesOf(&s.Resources[i])
		if err != nil {
			return nil, err
		}
		c.resources = append(c.resources, r)
	}
	return c, nil
}

func (c *compiled) isEmpty() bool {
	return len(c.nodeSelector)+len(c.tolerations)+len(c.registries)+len(c.proxy)+len(c.resources) == 0
}

func resourcesOf(of *v1alpha1.ContainerResources) (resources, error) {
	out := resources{workload{"*", "*"}, of.Container, nil}
	if of.Workload != "" {
		kind, name, found := strings.Cut(of.Workload, "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return resources{}, fmt.Errorf("%w: resources of workload %q: a workload must be <kind>/<name>, and either "+
				"part can be *", ErrInvalid, of.Workload)
		}
		out.workload = workload{kind, name}
	}
	var err error
	if out.values, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&of.Resources); err != nil {
		return resources{}, fmt.Errorf("%w: resources of workload %q: %w", ErrInvalid, of.Workload, err)
	}
	return out, nil
}

func (r *resources) matches(w workload, container string) bool {
	return (r.kind == "*" || strings.EqualFold(r.kind, w.kind)) && (r.name == "*" || r.name == w.name) &&
		(r.container == "" || r.container == container)
}
