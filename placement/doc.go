// Package placement will turn a policy into decisions, and decisions into work on member clusters.
//
// There is nothing in it yet; membership came first.
package placement
