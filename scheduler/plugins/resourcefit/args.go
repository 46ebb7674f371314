package resourcefit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/scheduler"
)

// Strategy says which clusters are the better ones.
type Strategy string

// The strategies.
const (
	LeastAllocated Strategy = "LeastAllocated" // those that have much left
	MostAllocated  Strategy = "MostAllocated"  // those that have little left
)

// Args are the plugin's arguments.
type Args struct {
	// Strategy is LeastAllocated by default.
	Strategy Strategy `json:"strategy,omitempty"`
	// Resources are those that scores depend on. None: those that the policy asks for.
	Resources []Resource `json:"resources,omitempty"`
}

// Resource is a resource and what it counts.
type Resource struct {
	Name corev1.ResourceName `json:"name"`
	// Weight among the others, from 1 to 100. Zero: 1.
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
