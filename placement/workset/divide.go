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

// shares are the replicas that each cluster was given last, by the name of the cluster. They count as what it has even before it is
// written, or what is on its way would be given away twice.
type shares map[string]map[bundle.Key]int32

// divide gives each cluster its part of the replicas. A cluster gets that of the revision that it was told, as if all others that were told
// any were told the same: the sum is right when they are.
func (l *look) divide(ctx context.Context) {
	told := map[*reading]bool{}
	next := shares{}
	for _, t := range l.clusters {
		if t.divided = nil; t.reading == nil || t.reading.division == nil {
			continue
		}
		told[t.reading] = true
		if share, given := l.state.shares[t.name]; given {
			next[t.name] = share // unless it gets another one
		}
	}
	for r := range told {
		l.divideOne(ctx, r, next)
	}
	l.state.shares = next
}

func (l *look) divideOne(ctx context.Context, r *reading, next shares) {
	var clusters []division.Cluster
	var targets []*target
	for _, t := range l.clusters {
		if c, is := l.party(r, t); is {
			clusters, targets = append(clusters, c), append(targets, t)
		}
	}
	room := l.room(ctx, r.division.Workloads(r.content.Objects, clusters))
	result, err := r.division.Divide(r.content.Objects, clusters, room)
	if err != nil { // of some workloads, which stay as they are; the others are divided
		l.problem(v1alpha1.ReasonDivisionFailed, "%s", err)
	}
	for _, u := range result.Unplaced {
		l.problem(v1alpha1.ReasonReplicasUnplaced, "%d replicas of %s %s fit nowhere: add clusters, or make them smaller", u.Replicas, u.Workload.Kind, u.Workload.Name)
	}
	for i, t := range targets {
		if t.reading == r && clusters[i].Part == division.Takes {
			share := &result.Clusters[i]
			t.divided = &divided{share.Objects, share.Replicas}
			next[t.name] = r.division.Current(share.Objects)
		}
	}
}

// party is a cluster as it takes part in dividing the replicas of a revision, if it does.
func (l *look) party(r *reading, t *target) (_ division.Cluster, is bool) {
	stays := division.Cluster{Cluster: &scheduler.Cluster{Name: t.name}, Current: replicasBy(t.held.live()), Part: division.Keeps}
	if !t.tellable() {
		return stays, true
	}
	part := division.Takes
	if t.told.revision == "" {
		if l.set.Status.Rollout.StableRevision != "" {
			return division.Cluster{}, false
		}
		part = division.Waits
	}
	result, err := r.plan.For(t.cluster)
	if err != nil {
		return stays, true // judge says why
	}
	return division.Cluster{Cluster: t.cluster, Objects: result.Objects, Current: l.currentShare(t), Part: part}, true
}

// currentShare is what a cluster was given last; after a restart, what its Works say.
func (l *look) currentShare(t *target) map[bundle.Key]int32 {
	if share, ok := l.state.shares[t.name]; ok {
		return share
	}
	return replicasBy(t.held.records)
}

// replicasBy are the replicas that Works say.
func replicasBy(works []*record) map[bundle.Key]int32 {
	all := map[bundle.Key]int32{}
	for _, r := range works {
		maps.Copy(all, r.replicas)
	}
	return all
}

// room returns for how many more replicas of each workload each cluster has room. Unknown room is none, so that
// clusters keep what they have.
func (l *look) room(ctx context.Context, workloads []division.Workload) func(bundle.Key, string) int32 {
	if len(workloads) == 0 {
		return nil
	}
	room, err := l.state.estimating.ask(ctx, l.Estimator, workloads)
	if err != nil {
		l.problem(v1alpha1.ReasonDivisionFailed, "%s: clusters keep the replicas that they have, and get no more", err)
		l.lookAgain()
	}
	return func(workload bundle.Key, cluster string) int32 { return room[spot{workload, cluster}] }
}

// hashOf tells lists of objects from each other.
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
