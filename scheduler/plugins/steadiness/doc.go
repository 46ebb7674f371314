// Package steadiness is the plugin that prefers the clusters that were chosen before, so that a decision does not move what runs
// for a small gain. How great a gain has to be is a matter of its weight: with weight 10 a cluster that is bound stays unless
// another one has 1000 points more.
package steadiness
