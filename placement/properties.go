package placement

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// lookAgainForProperties is how often a placement is decided again while its policy names something that no cluster
// reports.
const propertiesInterval = 5 * time.Minute

// properties is what the fleet has of the properties and resources that a policy names.
type properties struct {
	named   bool     // the policy names properties
	unknown []string // a message for each that no cluster reports: the field, the problem and the remedy
}

// propertiesOf compares the names in a policy with a fleet. Nothing is unknown to a fleet without clusters.
func propertiesOf(policy *v1alpha1.PlacementPolicy, snapshot *scheduler.Snapshot) properties {
	p := propertyNames{snapshot: snapshot}
	if affinity := policy.Affinity; affinity != nil {
		for i := range affinity.Required {
			p.term(&affinity.Required[i], fmt.Sprintf("spec.policy.affinity.required[%d]", i))
		}
		for i := range affinity.Preferred {
			p.term(&affinity.Preferred[i].Term, fmt.Sprintf("spec.policy.affinity.preferred[%d].term", i))
		}
	}
	for i, sorter := range policy.Sorters {
		p.sorter(sorter.Name, fmt.Sprintf("spec.policy.sorters[%d].name", i))
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

func (p *propertyNames) term(term *v1alpha1.ClusterSelectorTerm, path string) {
	for i, requirement := range term.Properties {
		switch requirement.Operator {
		case v1alpha1.PropertyNe, v1alpha1.PropertyNotIn, v1alpha1.PropertyDoesNotExist:
			continue // clusters without the property match
		}
		p.named = true
		name := requirement.Name
		if p.reported(name) {
			continue
		}
		remedy := "check the spelling, or let the agents report it"
		if resource, is := resourceOf(name); is {
			remedy = fmt.Sprintf("resources are no properties: to require an amount of %s, set spec.policy.resources", resource)
		}
		p.add("%s.properties[%d].name: no cluster reports a property %q; %s", path, i, name, remedy)
	}
}

func (p *propertyNames) sorter(name, path string) {
	p.named = true
	if resource, is := resourceOf(name); is {
		if !p.has(resource) {
			p.add("%s: no cluster reports a resource %q; check the spelling", path, resource)
		}
		return
	}
	switch {
	case p.reported(name):
	case p.has(corev1.ResourceName(name)):
		p.add("%s: no cluster reports a property %q; to sort by the resource, write %q", path, name, "available/"+name)
	default:
		p.add("%s: no cluster reports a property %q; check the spelling, or let the agents report it", path, name)
	}
}

// resourceOf is the resource that a sorter names with a prefix.
func resourceOf(name string) (corev1.ResourceName, bool) {
	list, resource, found := strings.Cut(name, "/")
	return corev1.ResourceName(resource), found && (list == "capacity" || list == "allocatable" || list == "available")
}

func (p *propertyNames) reported(name string) bool {
	return !p.snapshot.Where("placement:property:"+name, func(c *scheduler.Cluster) bool {
		_, has := c.Properties[name]
		return has
	}).Empty()
}

func (p *propertyNames) has(resource corev1.ResourceName) bool {
	return !p.snapshot.Where("placement:resource:"+string(resource), func(c *scheduler.Cluster) bool {
		for _, list := range []corev1.ResourceList{c.Capacity, c.Allocatable, c.Available} {
			if _, has := list[resource]; has {
				return true
			}
		}
		return false
	}).Empty()
}

// set puts the condition PropertiesKnown into a status. A policy that names nothing has none.
func (p properties) set(status *v1alpha1.PlacementStatus, generation int64, now metav1.Time) {
	if !p.named {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPropertiesKnown)
		return
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionPropertiesKnown, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPropertiesKnown,
		Message:            "Clusters of the fleet report every property and resource that the policy names.",
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	if len(p.unknown) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnknownProperty
		condition.Message = bounded.Text(strings.Join(p.unknown, "\n"), maxMessage)
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
