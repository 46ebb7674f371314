// Package schedulertest helps to test scheduler plugins: clusters and fleets in a line each, and [Conformance], which
// holds any plugin to what package scheduler expects of it.
package schedulertest
