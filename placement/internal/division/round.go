package division

import (
	"math"
	"slices"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// round is one call of Divide.
type round struct {
	*Division
	clusters []Cluster
	weights  []int64 // the weights of the clusters
	room     func(workload bundle.Key, cluster string) int32
}

// divide returns the number of replicas for each target, and the number without room.
func (r *round) divide(w *workload) (shares []int32, left int64, err error) {
	if r.parseTexts(w); w.err != nil {
		return nil, 0, w.err
	}
	if len(w.targets) == 0 {
		return nil, 0, nil // no cluster gets it, so no replicas are missing
	}
	n := w.replicas
	for i := range r.clusters {
		if r.clusters[i].Part == Keeps {
			n -= min(n, max(r.clusters[i].Current[w.key], 0))
		}
	}
	if !r.hasWeight(w.targets) && w.replicas > 0 {
		return nil, 0, &Error{Object: w.id, Field: "weights", Err: errNoWeight}
	}
	if shares, left, err = r.among(w, w.targets, n); err != nil {
		return nil, 0, err
	}
	return shares, left, r.hold(w, n, shares)
}

// hold ensures that the targets with Takes keep the replicas that they have if some of these belong to the shares of
// targets with Waits.
func (r *round) hold(w *workload, n int32, shares []int32) error {
	var takes []target
	var at []int // the indices of their shares
	given, had := int64(0), int64(0)
	for i, t := range w.targets {
		if r.clusters[t.cluster].Part == Takes {
			takes, at = append(takes, t), append(at, i)
			given += int64(shares[i])
			had += int64(r.current(w, t))
		}
	}
	had = min(had, int64(n))
	if len(takes) == len(w.targets) || given >= had {
		return nil
	}
	if !r.hasWeight(takes) { // all replicas belong to the targets with Waits, and move there later
		for i, t := range takes {
			shares[at[i]] = min(r.current(w, t), n)
		}
		return nil
	}
	theirs, _, err := r.among(w, takes, int32(had))
	for i := range theirs {
		shares[at[i]] = theirs[i]
	}
	return err
}

func (r *round) hasWeight(targets []target) bool {
	return slices.ContainsFunc(targets, func(t target) bool { return r.weights[t.cluster] > 0 })
}

// among divides n replicas among some of the targets.
func (r *round) among(w *workload, targets []target, n int32) (shares []int32, left int64, _ error) {
	request := replicas.Request{
		Replicas: n,
		Strategy: replicas.Strategy(r.strategy),
		Key:      w.key.Group + "/" + w.key.Kind + "/" + w.key.Namespace + "/" + w.key.Name,
		Clusters: make([]replicas.Target, len(targets)),
	}
	for i, t := range targets {
		name, current := r.clusters[t.cluster].Name, r.current(w, t)
		request.Clusters[i] = replicas.Target{
			Name: name, Weight: r.weights[t.cluster], Current: current,
			Capacity: replicas.CapacityOf(current, max(r.room(w.key, name), 0)),
		}
	}
	result, err := replicas.Divide(request)
	if err != nil {
		return nil, 0, &Error{Object: w.id, Err: err}
	}
	shares = make([]int32, len(targets))
	for i := range shares {
		shares[i] = result.Shares[i].Replicas // both are sorted by name
	}
	return shares, result.Unplaced, nil
}

// parseTexts parses the texts of all targets, each distinct text once. If a number cannot be written into a text, the
// workload has an error.
func (r *round) parseTexts(w *workload) {
	known := map[bundle.Hash]*text{}
	if w.text != nil {
		known[w.text.object.Hash] = w.text
	}
	for i := range w.targets {
		t := &w.targets[i]
		cluster := &r.clusters[t.cluster]
		o := &cluster.Objects[t.object]
		opened, found := known[o.Hash]
		if !found {
			var err error
			if opened, err = parseReplicas(o); err != nil && w.err == nil {
				w.err = &Error{Object: w.id, Cluster: cluster.Name, Field: ".spec", Err: err}
			}
			known[o.Hash] = opened
		}
		t.text = opened
	}
}

// existing returns the numbers that the targets were assigned before.
func (r *round) existing(w *workload) []int32 {
	shares := make([]int32, len(w.targets))
	for i, t := range w.targets {
		shares[i] = r.current(w, t)
	}
	return shares
}

func (r *round) current(w *workload, t target) int32 {
	return max(r.clusters[t.cluster].Current[w.key], 0)
}

// write sets the shares of the targets. It copies the list of objects of a cluster before its first change.
func (r *round) write(result *Result, w *workload, shares []int32) {
	for i, t := range w.targets {
		given, out := r.clusters[t.cluster].Objects, &result.Clusters[t.cluster]
		out.Replicas = sum(out.Replicas, shares[i])
		if t.text == nil || t.text.hasNumber(shares[i]) {
			continue
		}
		if &out.Objects[0] == &given[0] {
			out.Objects = slices.Clone(given)
		}
		out.Objects[t.object] = t.text.with(shares[i])
	}
}

// duplicate returns the unchanged objects of all clusters.
func (d *Division) duplicate(clusters []Cluster) []Share {
	shares := make([]Share, len(clusters))
	known := map[bundle.Hash]int32{}
	for i := range clusters {
		if clusters[i].Part == Keeps {
			continue
		}
		shares[i].Objects = clusters[i].Objects
		for j := range clusters[i].Objects {
			o := &clusters[i].Objects[j]
			n, found := known[o.Hash]
			if !found {
				_, n, _, _ = d.read(o)
				known[o.Hash] = n
			}
			shares[i].Replicas = sum(shares[i].Replicas, n)
		}
	}
	return shares
}

func sum(a, b int32) int32 { return int32(min(int64(a)+int64(b), math.MaxInt32)) }
