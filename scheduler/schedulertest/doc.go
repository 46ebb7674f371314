// Package schedulertest contains helpers to test scheduler plugins: functions that create clusters and fleets in one
// line each, and [Conformance], which tests whether a plugin satisfies the requirements of package scheduler.
package schedulertest
