// Package scheduler will choose member clusters: a framework of plugins that is pure Go, without a client.
//
// There is nothing in it yet; membership came first.
package scheduler
