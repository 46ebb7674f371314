package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// propertiesInterval is the interval in which a placement is decided again while it names a property or resource that
// no cluster reports.
const propertiesInterval = 5 * time.Minute

// properties is the result of comparing the properties and resources that a Placement names with those that the fleet
// reports.
type properties struct {
	named   bool     // the Placement names properties
	unknown []string // a message for each that can never match: the field, the problem and the remedy
}

// propertiesOf compares the names in a policy and in decision groups with a fleet. For a fleet without clusters it
// returns the zero value.
func propertiesOf(policy *v1alpha1.PlacementPolicy, groups []v1alpha1.DecisionGroup,
	snapshot *scheduler.Snapshot) properties {
	p := propertyNames{snapshot: snapshot}
	if affinity := policy.Affinity; affinity != nil {
		for i := range affinity.Required {
			p.requirements(affinity.Required[i].Properties, fmt.Sprintf("spec.policy.affinity.required[%d]", i))
		}
		for i := range affinity.Preferred {
			p.requirements(affinity.Preferred[i].Term.Properties, fmt.Sprintf("spec.policy.affinity.preferred[%d].term", i))
		}
	}
	for i, sorter := range policy.Sorters {
		p.sorter(sorter.Name, fmt.Sprintf("spec.policy.sorters[%d].name", i))
	}
	for i := range groups {
		p.requirements(groups[i].Properties, fmt.Sprintf("spec.decisionGroups[%d]", i))
	}
	if snapshot.Len() == 0 {
		return properties{}
	}
	return p.properties
}

type propertyNames struct {
	properties
	snapshot *scheduler.Snapshot
}

func (p *propertyNames) add(format string, args ...any) {
	p.unknown = append(p.unknown, fmt.Sprintf(format, args...))
}

func (p *propertyNames) requirements(all []v1alpha1.PropertyRequirement, path string) {
	for i, requirement := range all {
		switch requirement.Operator {
		case v1alpha1.PropertyNe, v1alpha1.PropertyNotIn, v1alpha1.PropertyDoesNotExist:
			continue // clusters without the property match
		}
		p.named = true
		name := requirement.Name
		if p.reported(name) {
			continue
		}
		remedy := "check the spelling, or configure the agents to report the property"
		if resource, is := resourceOf(name); is {
			remedy = fmt.Sprintf("resources are not properties: to require an amount of %s, set spec.policy.resources", resource)
		}
		p.add("%s.properties[%d].name: no cluster reports a property %q; %s", path, i, name, remedy)
	}
}

func (p *propertyNames) sorter(name, path string) {
	p.named = true
	if resource, is := resourceOf(name); is {
		list, _, _ := strings.Cut(name, "/")
		switch reported := p.listsWith(resource); {
		case len(reported) == 0:
			p.add("%s: no cluster reports a resource %q; check the spelling", path, resource)
		case !slices.Contains(reported, list):
			p.add("%s: no cluster reports %q; to sort by the resource, write %q", path, name,
				reported[0]+"/"+string(resource))
		}
		return
	}
	reported := p.listsWith(corev1.ResourceName(name))
	switch {
	case p.hasNumber(name):
	case p.reported(name):
		p.add("%s: property %q is not a number on any cluster, so it has no effect on the order; choose a numeric "+
			"property", path,
			name)
	case len(reported) > 0:
		p.add("%s: no cluster reports a property %q; to sort by the resource, write %q", path, name, reported[0]+"/"+name)
	default:
		p.add("%s: no cluster reports a property %q; check the spelling, or configure the agents to report the "+
			"property", path, name)
	}
}

// resourceOf returns the resource that a sorter names with a prefix, and reports whether the name has a prefix.
func resourceOf(name string) (corev1.ResourceName, bool) {
	list, resource, found := strings.Cut(name, "/")
	return corev1.ResourceName(resource), found && slices.Contains(resourceLists, list)
}

func (p *propertyNames) reported(name string) bool {
	return !p.snapshot.Where("placement:property:"+name, func(c *scheduler.Cluster) bool {
		_, has := c.Properties[name]
		return has
	}).Empty()
}

func (p *propertyNames) hasNumber(name string) bool {
	return !p.snapshot.Where("placement:number:"+name, func(c *scheduler.Cluster) bool {
		value, has := c.Properties[name]
		_, err := v1alpha1.ParseQuantity(value)
		return has && err == nil
	}).Empty()
}

// resourceLists contains the prefixes with which a sorter names a resource, the most common one first.
var resourceLists = []string{"available", "allocatable", "capacity"}

// listsWith returns the prefixes for which clusters report a resource.
func (p *propertyNames) listsWith(resource corev1.ResourceName) (lists []string) {
	for _, list := range resourceLists {
		if !p.snapshot.Where("placement:"+list+":"+string(resource), func(c *scheduler.Cluster) bool {
			resources := c.Available
			switch list {
			case "allocatable":
				resources = c.Allocatable
			case "capacity":
				resources = c.Capacity
			}
			_, has := resources[resource]
			return has
		}).Empty() {
			lists = append(lists, list)
		}
	}
	return lists
}

// set sets the condition PropertiesKnown in a status. It removes the condition if the Placement names no property or
// resource.
func (p properties) set(status *v1alpha1.PlacementStatus, generation int64, now metav1.Time) {
	if !p.named {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPropertiesKnown)
		return
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionPropertiesKnown, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPropertiesKnown,
		Message:            "Clusters of the fleet report every property and resource that the Placement names.",
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	if len(p.unknown) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnknownProperty
		condition.Message = bounded.Text(strings.Join(p.unknown, "\n"), maxMessage)
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
