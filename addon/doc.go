// Package addon will install, configure, roll out and remove add-ons of member clusters.
//
// There is nothing in it yet; membership came first.
package addon
