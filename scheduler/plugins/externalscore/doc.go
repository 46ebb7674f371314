// Package externalscore is the plugin that prefers clusters by scores from elsewhere ([scheduler.Cluster].Scores), such
// as what an add-on has measured. Its arguments say which, and what each is worth among the others:
//
//	{"scores": [{"name": "latency", "weight": 2}, {"name": "price"}]}
//
// A score is from -100 to 100, and 0 for a cluster that has none; one that is not a number or beyond these bounds
// counts as none. (The range and the neutral 0 are those of Open Cluster Management's AddOnPlacementScore.)
package externalscore
