// Package externalscore is a plugin that prefers clusters by external scores ([scheduler.Cluster].Scores), such as
// measurements of an add-on. The arguments select the scores and their relative weights:
//
//	{"scores": [{"name": "latency", "weight": 2}, {"name": "price"}]}
//
// A score is from -100 to 100. A missing score, a score outside of this range, and NaN count as 0. (The range and the
// neutral value 0 are those of Open Cluster Management's AddOnPlacementScore.)
package externalscore
