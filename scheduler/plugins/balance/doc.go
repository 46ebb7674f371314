// Package balance is the plugin that prefers the clusters that fewer placements have chosen ([scheduler.Cluster].Placements): the one with
// the fewest of all that can gets MaxScore, the one with the most 0, the others in proportion. It has nothing to say while
// nobody counts.
package balance
