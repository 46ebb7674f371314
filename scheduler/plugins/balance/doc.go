// Package balance is the plugin that prefers the clusters that fewer placements have chosen
// ([scheduler.Cluster].Placements): the one with the fewest of all that can gets MaxScore, the one with the most 0,
// the others in proportion. The placement that is decided does not count on the clusters that it is on. The plugin
// gives no scores while no cluster has a count.
package balance
