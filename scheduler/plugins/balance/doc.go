// Package balance is a plugin that prefers clusters with fewer placements ([scheduler.Cluster].Placements). Among the
// feasible clusters, the one with the fewest gets MaxScore, the one with the most gets 0, and the others are scaled
// linearly. The placement of the request is not counted on its own clusters. The plugin gives no scores while no
// cluster has a count.
package balance
