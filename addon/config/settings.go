package config

import (
	"slices"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Settings are the merged AddonConfigs of a member. The zero value changes nothing. It is safe for concurrent use.
type Settings struct {
	// InstallNamespace is the namespace of the add-on's agent on the member. Empty: not set.
	InstallNamespace string
	// Variables are the values of variables by name.
	Variables map[string]string
	// NodePlacement is the placement of pods, or nil.
	NodePlacement *v1alpha1.NodePlacement
	// Registries are the registries of images. The first matching one applies.
	Registries []v1alpha1.Registry
	// Proxy is the proxy of containers, or nil.
	Proxy *v1alpha1.Proxy
	// Resources are the resources of containers. The last matching entry applies.
	Resources []v1alpha1.ContainerResources
}

// Values merges AddonConfigs. Later ones take precedence; see the package documentation. The result shares no memory
// with the arguments.
func Values(configs []v1alpha1.AddonConfigSpec) Settings {
	var s Settings
	for i := range configs {
		c := configs[i].DeepCopy()
		if c.InstallNamespace != "" {
			s.InstallNamespace = c.InstallNamespace
		}
		for _, variable := range c.Variables {
			if s.Variables == nil {
				s.Variables = map[string]string{}
			}
			s.Variables[variable.Name] = variable.Value
		}
		if c.NodePlacement != nil {
			s.NodePlacement = c.NodePlacement
		}
		if c.Proxy != nil {
			s.Proxy = c.Proxy
		}
		s.Registries = slices.Concat(c.Registries, s.Registries)
		s.Resources = append(s.Resources, c.Resources...)
	}
	return s
}
