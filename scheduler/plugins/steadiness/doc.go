// Package steadiness is the plugin that prefers the clusters that were chosen before, so that a decision does not move
// what runs for a small gain. How great a gain has to be is a matter of its weight: with weight 10 a cluster that is
// bound stays unless another one has 1000 points more.
//
// It matters for policies with rebalance: Always. With all others a cluster that was chosen stays whatever its score.
package steadiness
