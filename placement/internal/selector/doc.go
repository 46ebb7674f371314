// Package selector evaluates the selectors of clusters and objects that occur in several places of a WorkSet, so that
// they have the same meaning in each place. It is pure: it uses no client and no clock.
package selector
