// Package testkit contains helpers for muster's own tests and benchmarks. Package mustertest contains the helpers that
// users need as well.
package testkit
