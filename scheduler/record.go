package scheduler

import (
	"context"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// record collects the reasons of a cycle for a diagnosis. All methods of a nil record do nothing.
type record struct {
	diagnosis Diagnosis
	feasible  Set
	order     []int32 // the slots of the feasible clusters, the best first
	totals    []float64
	scores    []pluginScores
	dropped   map[int]string
	droppedBy map[int]string
}

type pluginScores struct {
	plugin string
	weight float64
	scores []float64
}

// refuse records that a plugin rejected the request as a whole.
func (r *record) refuse(plugin, reason string) {
	if r != nil {
		r.diagnosis.Refused = append(r.diagnosis.Refused, Refusal{plugin, reason})
	}
}

// score records the scores of a plugin for the feasible clusters.
func (r *record) score(c *cycle, p *plugin, weight float64) {
	if r != nil {
		r.scores = append(r.scores, pluginScores{p.Name(), weight, slices.Clone(c.scores)})
	}
}

// ranked records the feasible clusters and their ranking.
func (r *record) ranked(c *cycle) {
	if r != nil {
		r.feasible, r.totals = c.feasible.Clone(), slices.Clone(c.candidates.scores)
		r.order = slices.Clone(c.candidates.Best(c.feasible, c.snapshot.Len()))
	}
}

// droppedReasons returns the map to which SelectPlugins add their reasons. Nil: no reasons are needed.
func (r *record) droppedReasons() map[int]string {
	if r == nil {
		return nil
	}
	r.dropped, r.droppedBy = map[int]string{}, map[int]string{}
	return r.dropped
}

// selected records that a SelectPlugin has returned. It attributes all drops since the previous plugin to this plugin.
func (r *record) selected(plugin string) {
	if r == nil {
		return
	}
	for slot := range r.dropped {
		if r.droppedBy[slot] == "" {
			r.droppedBy[slot] = plugin
		}
	}
}

// explain completes the diagnosis after the decision. It also calls Filter of batch plugins for each rejected cluster,
// to obtain the reasons.
func (c *cycle) explain(ctx context.Context, result *Result) error {
	r, d := c.record, &c.record.diagnosis
	d.Request, d.Wanted, d.Total, d.Hints = c.request.Name, result.Wanted, result.Total, result.Hints
	chosen := map[string]bool{}
	for _, choice := range result.Chosen {
		chosen[choice.Cluster.Name] = true
	}
	var others []ClusterDiagnosis
	for _, slot := range r.order {
		of := ClusterDiagnosis{Name: c.snapshot.clusters[slot].Name, Outcome: Feasible, Score: r.totals[slot]}
		of.Plugin, of.Reason = r.droppedBy[int(slot)], r.dropped[int(slot)]
		for _, s := range r.scores {
			of.Scores = append(of.Scores, PluginScore{s.plugin, s.scores[slot], s.weight})
		}
		if chosen[of.Name] {
			of.Outcome = Chosen
			d.Clusters = append(d.Clusters, of)
		} else {
			others = append(others, of)
		}
	}
	d.Clusters = append(d.Clusters, others...)
	if len(d.Refused) > 0 && r.feasible.words == nil {
		return nil // a plugin rejected the request before any cluster was filtered
	}
	rejected, err := c.rejections(ctx)
	d.Clusters = append(d.Clusters, rejected...)
	return err
}

// rejections returns the rejected clusters by name, each with the first plugin in the order of the profile that rejects
// it.
func (c *cycle) rejections(ctx context.Context) ([]ClusterDiagnosis, error) {
	spec := c.request.Policy.Spec()
	var out []ClusterDiagnosis
	for _, slot := range c.snapshot.order {
		cluster := c.snapshot.Cluster(int(slot))
		if cluster == nil || c.record.feasible.Has(int(slot)) {
			continue
		}
		of := ClusterDiagnosis{Name: cluster.Name, Outcome: Rejected}
		if spec.Type == v1alpha1.PickFixed && !slices.Contains(spec.ClusterNames, cluster.Name) {
			of.Reason = "is not named by the policy"
			out = append(out, of)
			continue
		}
		c.call.cluster = cluster
		for i := range c.profile.plugins {
			p := &c.profile.plugins[i]
			if p.filter.each == nil || c.answers.skips[p.index] {
				continue
			}
			at := c.call.begin(p, atFilter)
			status := p.filter.each.Filter(ctx, &c.state, c.request, cluster)
			if status.Code() == Success {
				continue
			}
			if status.Code() != Unschedulable {
				return nil, c.call.failed(at, statusError(status))
			}
			of.Plugin, of.Reason = p.Name(), status.Reason()
			break
		}
		if of.Plugin == "" {
			of.Reason = "was rejected by a plugin that reports no reason"
		}
		out = append(out, of)
	}
	c.call.cluster = nil
	if spec.Type == v1alpha1.PickFixed {
		for _, name := range spec.ClusterNames {
			if _, there := c.snapshot.Slot(name); !there {
				out = append(out, ClusterDiagnosis{Name: name, Outcome: Rejected, Reason: "is not in the fleet"})
			}
		}
		slices.SortStableFunc(out, func(a, b ClusterDiagnosis) int { return strings.Compare(a.Name, b.Name) })
	}
	return out, nil
}
