// Package testkit contains what only muster's own tests and benchmarks need. Package mustertest contains what users
// need as well.
package testkit
