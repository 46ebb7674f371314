package workset

import (
	"context"
	"crypto/sha256"
	"maps"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// shares contains the last assigned replicas of each cluster, by its name. The division counts them as existing before
// they are written. Otherwise it would assign them twice.
type shares map[string]map[bundle.Key]int32

// divide assigns a share of the replicas to each cluster, for the revision of the cluster. The sum of the shares is
// right if all clusters with a revision have the same one.
func (l *reconciliation) divide(ctx context.Context) {
	notified := map[*reading]bool{}
	next := shares{}
	for _, t := range l.clusters {
		if t.divided = nil; t.reading == nil || t.reading.division == nil {
			continue
		}
		notified[t.reading] = true
		if share, given := l.state.division.shares[t.name]; given {
			next[t.name] = share // kept unless the division replaces it
		}
	}
	for r := range notified {
		l.divideOne(ctx, r, next)
	}
	l.state.division.shares = next
}

func (l *reconciliation) divideOne(ctx context.Context, r *reading, next shares) {
	var clusters []division.Cluster
	var targets []*target
	for _, t := range l.clusters {
		if c, is := l.participant(r, t); is {
			clusters, targets = append(clusters, c), append(targets, t)
		}
	}
	room := l.capacity(ctx, r.division.Workloads(r.content.Objects, clusters))
	result, err := r.division.Divide(r.content.Objects, clusters, room)
	if err != nil { // some workloads keep their division; the others are divided
		l.problem(v1alpha1.ReasonDivisionFailed, "%s", err)
	}
	for _, u := range result.Unplaced {
		l.problem(v1alpha1.ReasonReplicasUnplaced, "%d replicas of %s %s do not fit on any cluster: add clusters, or "+
			"reduce the requests of the replicas",
			u.Replicas, u.Workload.Kind, u.Workload.Name)
	}
	for i, t := range targets {
		if t.reading == r && clusters[i].Part == division.Takes {
			share := &result.Clusters[i]
			t.divided = &divided{share.Objects, share.Replicas}
			next[t.name] = r.division.Current(share.Objects)
		}
	}
}

// participant returns the input for the division of a revision's replicas that describes a cluster, and whether the
// cluster participates.
func (l *reconciliation) participant(r *reading, t *target) (_ division.Cluster, is bool) {
	stays := division.Cluster{Cluster: &scheduler.Cluster{Name: t.name}, Current: replicasBy(t.existing.live()),
		Part: division.Keeps}
	if !t.writable() {
		return stays, true
	}
	part := division.Takes
	if t.assigned.revision == "" {
		if l.set.Status.Rollout.StableRevision != "" {
			return division.Cluster{}, false
		}
		part = division.Waits
	}
	result, err := r.plan.For(t.cluster)
	if err != nil || t.limit.check(&r.content.Work, result.Objects) != nil {
		return stays, true // evaluate reports the reason
	}
	return division.Cluster{Cluster: t.cluster, Objects: result.Objects, Current: l.currentShare(t), Part: part}, true
}

// currentShare returns the last assigned replicas of a cluster. After a restart they are those in its Works.
func (l *reconciliation) currentShare(t *target) map[bundle.Key]int32 {
	if share, ok := l.state.division.shares[t.name]; ok {
		return share
	}
	return replicasBy(t.existing.records)
}

// replicasBy returns the replicas in Works.
func replicasBy(works []*record) map[bundle.Key]int32 {
	all := map[bundle.Key]int32{}
	for _, r := range works {
		maps.Copy(all, r.replicas)
	}
	return all
}

// capacity returns a function that returns for how many more replicas of a workload a cluster has capacity. It returns
// zero if the capacity is unknown, so that clusters keep their replicas.
func (l *reconciliation) capacity(ctx context.Context, workloads []division.Workload) func(bundle.Key, string) int32 {
	if len(workloads) == 0 {
		return nil
	}
	room, err := l.state.division.estimating.run(ctx, l.Estimator, workloads)
	if err != nil {
		l.problem(v1alpha1.ReasonDivisionFailed, "%s: clusters keep their current replicas, and get no additional ones", err)
		l.requeueSoon()
	}
	return func(workload bundle.Key, cluster string) int32 { return room[capacityKey{workload, cluster}] }
}

// hashOf returns a hash of a list of objects.
func hashOf(objects []bundle.Object) bundle.Hash {
	if len(objects) == 0 {
		return bundle.Hash{}
	}
	h := sha256.New()
	for i := range objects {
		h.Write(objects[i].Hash[:])
	}
	return bundle.Hash(h.Sum(nil))
}
