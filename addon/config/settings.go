package config

import (
	"slices"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Settings are what all AddonConfigs that count for a member say together. The zero value changes nothing. It may be used by many at once.
type Settings struct {
	// InstallNamespace is where the add-on's agent is on the member; empty: none of them says.
	InstallNamespace string
	// Variables by their names.
	Variables map[string]string
	// NodePlacement of pods, or nil.
	NodePlacement *v1alpha1.NodePlacement
	// Registries of images, of which the first that matches counts.
	Registries []v1alpha1.Registry
	// Proxy of containers, or nil.
	Proxy *v1alpha1.Proxy
	// Resources of containers, of which the last that matches counts.
	Resources []v1alpha1.ContainerResources
}

// Values makes one of several AddonConfigs, of which what a later one says goes before: the package's documentation says how for each field. It shares
// nothing with them.
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
