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
	// Replicas are those of all clusters together, as the object says that all share.
	Replicas int32
	// Requirements are what one replica needs.
	Requirements replicas.Requirements
	// Clusters that get the object, by their names. There is at least one.
	Clusters []string
}

// Error is what keeps a workload from being divided.
type Error struct {
	Object workv1alpha1.ResourceIdentifier
	// Cluster is the one whose object it is about, if that is another one than all clusters share.
	Cluster string
	// Field is that of the object, such as .spec.replicas, or of the division, such as weights. Empty: neither is to
	// blame.
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

var errNoWeight = errors.New("none of the clusters that get the object has a weight: give one to at least one of " +
	"them, or remove all weights for equal parts")

// Workloads are those that [Division.Divide] divides, in the order of the objects, which are as all clusters share
// them. One that itself cannot be divided, such as for its number, is not among them, nor is one that no cluster gets;
// with strategy Duplicated there are none.
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

// Current returns how many replicas objects have, by what they say themselves: a [Cluster]'s Current, if the objects
// are those that it was given before. Objects whose replicas are not divided, or that have a number that cannot be, are
// not in it.
func (d *Division) Current(objects []bundle.Object) map[bundle.Key]int32 {
	current := map[bundle.Key]int32{}
	for i := range objects {
		if _, n, is, err := d.read(&objects[i]); is && err == nil {
			current[objects[i].Key()] = n
		}
	}
	return current
}

// workload is an object that is to be divided, whether it can be or not.
type workload struct {
	id       workv1alpha1.ResourceIdentifier
	key      bundle.Key
	text     *text // as all clusters share it; nil if there is no place for a number
	replicas int32
	err      *Error
	targets  []target // by the names of their clusters
}

// target is a cluster that gets the object.
type target struct {
	cluster int   // of those given
	object  int   // of its objects
	text    *text // nil if there is no place for a number
}

// find returns the workloads among the objects, and which clusters get them.
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

// read takes an object apart, and says how many replicas it has and whether they are to be divided. If they are and
// cannot be, there is an error.
func (d *Division) read(o *bundle.Object) (t *text, n int32, is bool, err *Error) {
	if !d.concerns(o) {
		return nil, 0, false, nil
	}
	t, cause := open(o)
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
		// What is no whole number is something else in another kind.
		is = standard(o) || errors.Is(cause, errRange)
		return t, 0, is, &Error{Object: o.ResourceIdentifier, Field: ".spec.replicas", Err: cause}
	}
	return t, n, true, nil
}

func (d *Division) concerns(o *bundle.Object) bool {
	if len(d.objects) == 0 {
		return standard(o)
	}
	return selector.Object(d.objects, &o.ResourceIdentifier)
}

// standard kinds are those of Kubernetes that have replicas, of which there is 1 where nothing is said.
func standard(o *bundle.Object) bool {
	switch o.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		return o.Group == "apps"
	case "ReplicationController":
		return o.Group == ""
	}
	return false
}

func (d *Division) weigh(clusters []Cluster) []int64 {
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
