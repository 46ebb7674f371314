// Package selector reads the selectors of clusters and objects that a WorkSet has in several places, so that they mean
// the same in each. It is pure.
package selector
