package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Diagnosis explains a decision.
type Diagnosis struct {
	Request string
	// Wanted is the number of wanted clusters; negative: all. Total is the number of clusters in the snapshot.
	Wanted, Total int
	// Refused lists the plugins that rejected the request as a whole.
	Refused []Refusal
	// Clusters are all clusters: the chosen ones and then the feasible ones, both in the order of the ranking, and finally
	// the rejected ones by name.
	Clusters []ClusterDiagnosis
	// Hints are the suggestions of PostFilter plugins.
	Hints []string
}

// Refusal is a plugin and its reason.
type Refusal struct{ Plugin, Reason string }

// Outcome is the result for one cluster.
type Outcome string

// The outcomes.
const (
	// Chosen: the cluster was chosen.
	Chosen Outcome = "Chosen"
	// Feasible: no plugin rejects the cluster, but other clusters were preferred.
	Feasible Outcome = "Feasible"
	// Rejected: a plugin rejects the cluster.
	Rejected Outcome = "Rejected"
)

// ClusterDiagnosis explains the result for one cluster.
type ClusterDiagnosis struct {
	Name    string
	Outcome Outcome
	// Plugin is the plugin that rejected the cluster, and Reason is its reason. Both are empty for a Feasible cluster that
	// ranked too low.
	Plugin, Reason string
	// Score is the weighted sum of Scores.
	Score  float64
	Scores []PluginScore
}

// PluginScore is the score that one plugin gave a cluster.
type PluginScore struct {
	Plugin string
	// Score is from 0 to [MaxScore]. It is multiplied by Weight.
	Score, Weight float64
}

// Diagnose explains the decision. It repeats the decision and collects the reasons of all plugins. The duration is that
// of a cycle without batch plugins.
func (r *Result) Diagnose(ctx context.Context) (*Diagnosis, error) {
	if r.scheduler == nil {
		return nil, errors.New("diagnose: the Result was not returned by Schedule")
	}
	record := &record{}
	if _, err := r.scheduler.run(ctx, r.profile, r.snapshot, r.request, record); err != nil {
		return nil, fmt.Errorf("diagnose %s: %w", r.request.Name, err)
	}
	return &record.diagnosis, nil
}

// String returns the diagnosis in one sentence, such as:
//
//	2 of 40 clusters chosen; 30 do not match region in (eu), 8 have taint maintenance
func (d *Diagnosis) String() string {
	chosen, others := 0, 0
	counts := map[string]int{}
	for i := range d.Clusters {
		switch c := &d.Clusters[i]; {
		case c.Outcome == Chosen:
			chosen++
		case c.Reason != "":
			counts[c.Reason]++
		default:
			others++
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d of %d clusters chosen", chosen, d.Total)
	if d.Wanted > chosen {
		fmt.Fprintf(&out, ", but %d %s", d.Wanted, agree("is desired", d.Wanted))
	}
	var parts []string
	for _, refusal := range d.Refused {
		parts = append(parts, refusal.Plugin+" "+refusal.Reason)
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d more %s", others, agree("is feasible", others)))
	}
	reasons := make([]string, 0, len(counts))
	for reason := range counts {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for _, reason := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", counts[reason], agree(reason, counts[reason])))
	}
	if len(parts) > 0 {
		out.WriteString("; " + strings.Join(parts, ", "))
	}
	return out.String()
}

// agree returns the reason with its first word, the verb, in the plural if the count is not 1.
func agree(reason string, count int) string {
	if count == 1 {
		return reason
	}
	verb, rest, _ := strings.Cut(reason, " ")
	switch verb {
	case "is":
		verb = "are"
	case "was":
		verb = "were"
	case "has":
		verb = "have"
	case "does":
		verb = "do"
	default:
		verb = strings.TrimSuffix(verb, "s")
		if stem, is := strings.CutSuffix(verb, "e"); is &&
			slices.ContainsFunc([]string{"ch", "sh", "ss", "x"}, func(end string) bool {
				return strings.HasSuffix(stem, end)
			}) {
			verb = stem // matches, misses
		}
	}
	if rest == "" {
		return verb
	}
	return verb + " " + rest
}

// Table writes the diagnosis as a table for a terminal, with a row per cluster and a column per plugin that scores.
func (d *Diagnosis) Table(w io.Writer) error {
	var plugins []string
	for i := range d.Clusters {
		if len(d.Clusters[i].Scores) > 0 {
			for _, score := range d.Clusters[i].Scores {
				plugins = append(plugins, score.Plugin)
			}
			break
		}
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	header := append([]string{"CLUSTER", "RESULT", "SCORE"}, plugins...)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(header, "\t"))+"\tWHY")
	for i := range d.Clusters {
		c := &d.Clusters[i]
		row := []string{c.Name, string(c.Outcome), ""}
		if c.Outcome != Rejected {
			row[2] = number(c.Score)
		}
		for j := range plugins {
			cell := ""
			if j < len(c.Scores) {
				cell = number(c.Scores[j].Score)
				if c.Scores[j].Weight != 1 {
					cell += " × " + number(c.Scores[j].Weight)
				}
			}
			row = append(row, cell)
		}
		why := c.Reason
		if c.Plugin != "" {
			why = c.Plugin + ": " + c.Reason
		}
		fmt.Fprintln(table, strings.Join(append(row, why), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// number formats a score with at most one decimal place.
func number(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
}
