package division

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/selector"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler/replicas"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Workload is an object whose replicas are divided.
type Workload struct {
	Key bundle.Key
	// Replicas is the total for all clusters, from the object that all clusters share.
	Replicas int32
	// Requirements are the requirements of one replica.
	Requirements replicas.Requirements
	// Clusters are the clusters that get the object, sorted by name. There is at least one.
	Clusters []string
}

// Error is the reason why a workload cannot be divided.
type Error struct {
	Object workv1alpha1.ResourceIdentifier
	// Cluster is the cluster whose object has the error. Empty: the object that all clusters share has it.
	Cluster string
	// Field is the field of the object, such as .spec.replicas, or of the division, such as weights. Empty: no field is
	// the cause.
	Field string
	Err   error
}

func (e *Error) Error() string {
	text := "divide the replicas of " + e.Object.String()
	if e.Cluster != "" {
		text += " for cluster " + e.Cluster
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

var errNoWeight = errors.New("no cluster that receives the object has a weight: set a weight for at least one of " +
	"them, or remove all weights for equal parts")

// Workloads returns the workloads that [Division.Divide] divides, in the order of the objects, which are those that all
// clusters share. It excludes objects that cannot be divided, for example because of an invalid number, and objects
// that no cluster gets. With strategy Duplicated it returns none.
func (d *Division) Workloads(objects []bundle.Object, clusters []Cluster) []Workload {
	if d.strategy == v1alpha1.DivisionDuplicated {
		return nil
	}
	var out []Workload
	for _, w := range d.find(objects, clusters) {
		if w.err != nil || len(w.targets) == 0 {
			continue
		}
		names := make([]string, len(w.targets))
		for i, t := range w.targets {
			names[i] = clusters[t.cluster].Name
		}
		out = append(out, Workload{w.key, w.replicas, requirements(w.text), names})
	}
	return out
}

// Current returns the numbers of replicas in objects. If the objects are those that a [Cluster] was assigned before,
// the result is its Current. It excludes objects whose replicas are not divided, and objects with an invalid number.
func (d *Division) Current(objects []bundle.Object) map[bundle.Key]int32 {
	current := map[bundle.Key]int32{}
	for i := range objects {
		if _, n, is, err := d.read(&objects[i]); is && err == nil {
			current[objects[i].Key()] = n
		}
	}
	return current
}

// workload is an object that must be divided, including one that cannot be.
type workload struct {
	id       workv1alpha1.ResourceIdentifier
	key      bundle.Key
	text     *text // of the object that all clusters share; nil if it has no place for a number
	replicas int32
	err      *Error
	targets  []target // sorted by the names of their clusters
}

// target is a cluster that gets the object.
type target struct {
	cluster int   // the index of the cluster in the argument
	object  int   // the index of the object in the cluster's objects
	text    *text // nil if the object has no place for a number
}

// find returns the workloads among the objects, with the clusters that get them.
func (d *Division) find(objects []bundle.Object, clusters []Cluster) []*workload {
	var out []*workload
	known := make(map[bundle.Key]*workload)
	for i := range objects {
		o := &objects[i]
		t, n, is, err := d.read(o)
		if !is {
			continue
		}
		key := o.Key()
		if w := known[key]; w != nil {
			w.err = &Error{Object: o.ResourceIdentifier, Err: bundle.ErrDuplicate}
			continue
		}
		w := &workload{id: o.ResourceIdentifier, key: key, text: t, replicas: n, err: err}
		known[key] = w
		out = append(out, w)
	}
	if len(out) == 0 {
		return nil
	}
	order := make([]int, len(clusters))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(clusters[a].Name, clusters[b].Name) })
	for _, c := range order {
		if clusters[c].Part == Keeps {
			continue
		}
		for i := range clusters[c].Objects {
			if w := known[clusters[c].Objects[i].Key()]; w != nil {
				w.targets = append(w.targets, target{cluster: c, object: i})
			}
		}
	}
	return out
}

// read parses an object. It returns its number of replicas, and reports whether they must be divided. If they must be
// and cannot be, it returns an error.
func (d *Division) read(o *bundle.Object) (t *text, n int32, is bool, err *Error) {
	if !d.appliesTo(o) {
		return nil, 0, false, nil
	}
	t, cause := parseReplicas(o)
	if cause != nil {
		return nil, 0, standard(o), &Error{Object: o.ResourceIdentifier, Field: ".spec", Err: cause}
	}
	if t.number == "" {
		if standard(o) {
			return t, 1, true, nil
		}
		return t, 0, false, nil
	}
	n, cause = t.replicas()
	if cause != nil {
		// In another kind, a value that is not an integer has another meaning.
		is = standard(o) || errors.Is(cause, errRange)
		return t, 0, is, &Error{Object: o.ResourceIdentifier, Field: ".spec.replicas", Err: cause}
	}
	return t, n, true, nil
}

func (d *Division) appliesTo(o *bundle.Object) bool {
	if len(d.objects) == 0 {
		return standard(o)
	}
	return selector.Object(d.objects, &o.ResourceIdentifier)
}

// standard reports whether the object has one of the kinds of Kubernetes with replicas, which have 1 replica by
// default.
func standard(o *bundle.Object) bool {
	switch o.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		return o.Group == "apps"
	case "ReplicationController":
		return o.Group == ""
	}
	return false
}

func (d *Division) weightsOf(clusters []Cluster) []int64 {
	weights := make([]int64, len(clusters))
	for i := range clusters {
		if len(d.weights) == 0 {
			weights[i] = 1
			continue
		}
		if w := slices.IndexFunc(d.weights, func(w weight) bool { return w.clusters.Match(clusters[i].Cluster) }); w >= 0 {
			weights[i] = d.weights[w].of
		}
	}
	return weights
}
