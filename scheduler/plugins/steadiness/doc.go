// Package steadiness is a plugin that prefers the clusters that were chosen before, so that a decision does not move
// workloads for a small gain. The weight of the plugin defines the minimum gain: with weight 10, a bound cluster stays
// unless the weighted score of another cluster is higher by more than 1000 points.
//
// The plugin affects only policies with rebalance: Always. With other policies, a cluster that was chosen stays
// independently of its score.
package steadiness
