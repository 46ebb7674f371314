package resourcefit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/scheduler"
)

// Strategy defines which clusters are preferred.
type Strategy string

// The strategies.
const (
	LeastAllocated Strategy = "LeastAllocated" // prefers clusters with more available resources
	MostAllocated  Strategy = "MostAllocated"  // prefers clusters with fewer available resources
)

// Args are the plugin's arguments.
type Args struct {
	// Strategy is the scoring strategy. Empty: LeastAllocated.
	Strategy Strategy `json:"strategy,omitempty"`
	// Resources are the resources that affect scores. Empty: the resources that the policy requests.
	Resources []Resource `json:"resources,omitempty"`
}

// Resource is a resource and its weight.
type Resource struct {
	Name corev1.ResourceName `json:"name"`
	// Weight is the relative weight of the resource, from 1 to 100. Zero: 1.
	Weight int32 `json:"weight,omitempty"`
}

func (a *Args) validate() error {
	switch a.Strategy {
	case "":
		a.Strategy = LeastAllocated
	case LeastAllocated, MostAllocated:
	default:
		return fmt.Errorf("strategy: %q is neither %s nor %s", a.Strategy, LeastAllocated, MostAllocated)
	}
	for i := range a.Resources {
		r := &a.Resources[i]
		if r.Weight == 0 {
			r.Weight = 1
		}
		switch {
		case r.Name == "":
			return fmt.Errorf("resources[%d].name: must not be empty", i)
		case r.Weight < 1 || r.Weight > scheduler.MaxWeight:
			return fmt.Errorf("resources[%d].weight: %d is not from 1 to %d", i, r.Weight, scheduler.MaxWeight)
		}
	}
	return nil
}
