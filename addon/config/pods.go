package config

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podsOf contains the paths of pod specs.
var podsOf = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// configureAt changes the pod spec at a path of an object.
func (c *compiled) configureAt(path []string, w workload, fields map[string]any) error {
	if len(path) == 0 {
		return c.configure(w, fields)
	}
	child, err := get[map[string]any](fields, path[0])
	if err != nil || child == nil {
		return err
	}
	return under(path[0], c.configureAt(path[1:], w, child))
}

// configure changes a pod spec.
func (c *compiled) configure(w workload, pod map[string]any) error {
	if err := c.place(pod); err != nil {
		return err
	}
	for _, name := range []string{"initContainers", "containers"} {
		err := eachItem(pod, name, func(container map[string]any) error { return c.contain(w, container) })
		if err != nil {
			return err
		}
	}
	return eachItem(pod, "volumes", func(volume map[string]any) error {
		image, err := get[map[string]any](volume, "image")
		if err != nil {
			return err
		}
		return c.mirror(image, "reference")
	})
}

// place adds the node selector and the tolerations.
func (c *compiled) place(pod map[string]any) error {
	selector, err := get[map[string]any](pod, "nodeSelector")
	if err != nil {
		return err
	}
	if selector == nil {
		selector = map[string]any{}
	}
	for label, value := range c.nodeSelector {
		selector[label] = value
		pod["nodeSelector"] = selector
	}
	tolerations, err := get[[]any](pod, "tolerations")
	if err != nil {
		return err
	}
	for _, toleration := range c.tolerations {
		if !slices.ContainsFunc(tolerations, func(there any) bool { return reflect.DeepEqual(there, any(toleration)) }) {
			tolerations = append(tolerations, runtime.DeepCopyJSON(toleration))
			pod["tolerations"] = tolerations
		}
	}
	return nil
}

// contain changes a container.
func (c *compiled) contain(w workload, container map[string]any) error {
	if err := c.mirror(container, "image"); err != nil {
		return err
	}
	name, _ := container["name"].(string)
	for i := len(c.resources) - 1; i >= 0; i-- {
		if r := &c.resources[i]; r.matches(w, name) {
			if container["resources"] = runtime.DeepCopyJSON(r.values); len(r.values) == 0 {
				delete(container, "resources")
			}
			break
		}
	}
	has := map[string]bool{}
	err := eachItem(container, "env", func(variable map[string]any) error {
		name, _ := variable["name"].(string)
		has[name] = true
		return nil
	})
	if err != nil {
		return err
	}
	env, _ := container["env"].([]any)
	for _, v := range c.proxy {
		if !has[v.name] && !has[v.lower] {
			env = append(env, map[string]any{"name": v.name, "value": v.value},
				map[string]any{"name": v.lower, "value": v.value})
			container["env"] = env
		}
	}
	return nil
}

// mirror changes the image in a field.
func (c *compiled) mirror(fields map[string]any, name string) error {
	image, err := get[string](fields, name)
	if mirrored := mirrored(image, c.registries); err == nil && mirrored != image {
		fields[name] = mirrored
	}
	return err
}

// get returns a field, or the zero value if it is missing or null.
func get[T any](fields map[string]any, name string) (T, error) {
	value, isOne := fields[name].(T)
	if isOne || fields[name] == nil {
		return value, nil
	}
	must := "string"
	switch any(value).(type) {
	case map[string]any:
		must = "map"
	case []any:
		must = "list"
	}
	return value, fmt.Errorf("%s must be a %s", name, must)
}

// under adds a field name to the path of an error.
func under(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s.%w", name, err)
}

// eachItem calls a function for each item of a list of maps.
func eachItem(fields map[string]any, name string, do func(map[string]any) error) error {
	items, err := get[[]any](fields, name)
	if err != nil {
		return err
	}
	for i, item := range items {
		fields, isMap := item.(map[string]any)
		if !isMap {
			return fmt.Errorf("%s[%d] must be a map", name, i)
		}
		if err := under(fmt.Sprintf("%s[%d]", name, i), do(fields)); err != nil {
			return err
		}
	}
	return nil
}
