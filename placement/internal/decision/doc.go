// Package decision lays the clusters that a placement has chosen out in slices, so that those who read them see a
// change only where there is one.
//
// A slice becomes a PlacementDecision. A cluster that stays chosen keeps its slice and its place in it, whatever
// happens to others: who follows a slice is never told that a cluster has gone from it and come to another. New
// clusters fill the first slices that have room, and a slice that is empty goes; so there may be a few more slices than
// there would have to be, and never one that is needed twice.
//
// It is pure: no client, no clock.
package decision
