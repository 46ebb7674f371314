package agent

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// tally sums up the capacity of all nodes, and the allocatable and available resources of the schedulable ones: ready,
// not cordoned and not being deleted. Taints are ignored, because pods can tolerate them. Nodes must be added before
// pods.
type tally struct {
	nodes     int // including those that are not schedulable
	locations locations
	free      map[string]corev1.ResourceList
	usage     v1alpha1.ResourceUsage
}

func newTally() *tally {
	return &tally{
		locations: newLocations(),
		free:      map[string]corev1.ResourceList{},
		usage:     v1alpha1.ResourceUsage{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}},
	}
}

func (t *tally) addNode(node *corev1.Node) {
	t.nodes++
	t.locations.addNode(node)
	add(t.usage.Capacity, node.Status.Capacity)
	if !takesPods(node) {
		return
	}
	add(t.usage.Allocatable, node.Status.Allocatable)
	t.free[node.Name] = node.Status.Allocatable.DeepCopy()
}

func takesPods(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// addPod subtracts the requests of the pod from its node.
func (t *tally) addPod(pod *corev1.Pod) {
	free, counts := t.free[pod.Spec.NodeName]
	if !counts || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	subtract(free, requests(&pod.Spec))
	subtract(free, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
}

// sum returns the usage. A node that is overcommitted does not reduce the available resources of other nodes.
func (t *tally) sum() *v1alpha1.ResourceUsage {
	t.usage.Available = corev1.ResourceList{}
	for _, free := range t.free {
		for name, quantity := range free {
			if quantity.Sign() < 0 {
				quantity = resource.Quantity{Format: quantity.Format}
			}
			add(t.usage.Available, corev1.ResourceList{name: quantity})
		}
	}
	return &t.usage
}

// requests returns a pod's requests as the scheduler computes them: the maximum that its containers need at one time,
// plus its overhead. (See KEP-753 for sidecars, and KEP-2837 for requests of whole pods.)
func requests(pod *corev1.PodSpec) corev1.ResourceList {
	running := corev1.ResourceList{}
	for i := range pod.Containers {
		add(running, pod.Containers[i].Resources.Requests)
	}
	sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sidecars, c.Resources.Requests)
			atLeast(starting, sidecars)
			continue
		}
		needs := sidecars.DeepCopy()
		add(needs, c.Resources.Requests)
		atLeast(starting, needs)
	}
	add(running, sidecars)
	atLeast(running, starting)
	if pod.Resources != nil {
		maps.Copy(running, pod.Resources.Requests)
	}
	add(running, pod.Overhead)
	return running
}

// computeResources are the resources that placements use most. They are never omitted.
var computeResources = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
}

// boundedResources returns the usage within the limit of a Membership, and the number of omitted resources. It keeps
// the compute resources, and then the first resources by name.
func boundedResources(usage *v1alpha1.ResourceUsage) (*v1alpha1.ResourceUsage, int) {
	// Each resource that is allocatable or available is a capacity.
	omitted := len(usage.Capacity) - maxResources
	if omitted <= 0 {
		return usage, 0
	}
	names := slices.SortedFunc(maps.Keys(usage.Capacity), func(a, b corev1.ResourceName) int {
		isA, isB := slices.Contains(computeResources, a), slices.Contains(computeResources, b)
		if isA != isB {
			return map[bool]int{true: -1, false: 1}[isA]
		}
		return cmp.Compare(a, b)
	})
	kept := &v1alpha1.ResourceUsage{Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{},
		Available: corev1.ResourceList{}}
	for _, name := range names[:maxResources] {
		for _, list := range []struct{ from, into corev1.ResourceList }{
			{usage.Capacity, kept.Capacity}, {usage.Allocatable, kept.Allocatable}, {usage.Available, kept.Available},
		} {
			if quantity, known := list.from[name]; known {
				list.into[name] = quantity
			}
		}
	}
	return kept, omitted
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total, known := sum[name]
		if !known {
			total = resource.Quantity{Format: quantity.Format}
		}
		total.Add(quantity)
		sum[name] = total
	}
}

// subtract ignores resources that the list does not contain.
func subtract(from, less corev1.ResourceList) {
	for name, quantity := range less {
		if rest, known := from[name]; known {
			rest.Sub(quantity)
			from[name] = rest
		}
	}
}

func atLeast(list, floor corev1.ResourceList) {
	for name, quantity := range floor {
		if has, known := list[name]; !known || has.Cmp(quantity) < 0 {
			list[name] = quantity
		}
	}
}
