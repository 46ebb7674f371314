// Package decision distributes the chosen clusters of a placement over slices, and changes as few slices as possible.
//
// A slice becomes a PlacementDecision. A cluster that stays chosen keeps its slice and its position in it, whatever
// happens to other clusters, so a client that watches one slice never observes that a cluster moves to another slice.
// New clusters fill the first slices that have room, and empty slices are deleted. So there may be more slices than
// necessary, but a cluster is never in two slices.
//
// The package is pure: it uses no client and no clock.
package decision
