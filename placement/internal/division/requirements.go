package division

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/scheduler/replicas"
)

// requirements returns the requirements of the pod template. A template that cannot be parsed, or that may not be a pod
// template, has no requirements: the member reports the error.
func requirements(t *text) replicas.Requirements {
	r := replicas.Requirements{Namespace: t.object.Namespace}
	var template struct {
		Spec *corev1.PodSpec `json:"spec"`
	}
	raw := locate(t.spec, "template").value(t.spec)
	if utiljson.Unmarshal(raw, &template) == nil && template.Spec != nil && len(template.Spec.Containers) > 0 {
		r.Pod, r.Requests = template.Spec, requests(template.Spec)
	} else if standard(&t.object) {
		r.Requests = corev1.ResourceList{}
	}
	if r.Requests != nil {
		r.Requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return r
}

// requests returns the resources that the scheduler of a member will reserve for a pod of the template, as PodRequests
// of k8s.io/component-helpers/resource computes them (KEP-753, "Resources calculation for scheduling and pod
// admission", and KEP-2837 for the pod level), after the API server has added the requests that follow from limits
// (SetDefaults_Pod of pkg/apis/core/v1).
//
// An init container runs before the containers, but concurrently with the sidecars that are listed before it. So the
// result for each resource is the maximum of two values: the total of all containers and sidecars, and the largest
// total of an init container and the sidecars before it.
func requests(pod *corev1.PodSpec) corev1.ResourceList {
	total, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Containers {
		add(total, requested(&pod.Containers[i].Resources))
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		needs := requested(&c.Resources)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(total, needs)
			add(sidecars, needs)
			continue
		}
		add(needs, sidecars)
		raiseTo(peak, needs)
	}
	raiseTo(total, peak)
	if pod.Resources != nil {
		ofPod(total, pod.Resources)
	}
	add(total, pod.Overhead)
	return total
}

// requested returns the requests of a container, and its limits for resources without a request.
func requested(r *corev1.ResourceRequirements) corev1.ResourceList {
	out := r.Requests.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	for name, limit := range r.Limits {
		if _, found := out[name]; !found {
			out[name] = limit.DeepCopy()
		}
	}
	return out
}

// ofPod applies the requests of the pod as a whole, which replace those of its containers. A limit of the pod replaces
// them only for resources that no container requests. Huge pages cannot be overcommitted, so their limit is always the
// request.
func ofPod(total corev1.ResourceList, pod *corev1.ResourceRequirements) {
	for name, limit := range pod.Limits {
		hugePages := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if _, found := total[name]; hugePages || !found && ofPodLevel(name) {
			total[name] = limit.DeepCopy()
		}
	}
	for name, request := range pod.Requests {
		if ofPodLevel(name) {
			total[name] = request.DeepCopy()
		}
	}
}

func ofPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		value := to[name]
		sum := value.DeepCopy()
		sum.Add(quantity)
		to[name] = sum
	}
}

func raiseTo(to, least corev1.ResourceList) {
	for name, quantity := range least {
		if value, found := to[name]; !found || quantity.Cmp(value) > 0 {
			to[name] = quantity.DeepCopy()
		}
	}
}
