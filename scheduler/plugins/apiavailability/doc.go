// Package apiavailability is the plugin that leaves out clusters which do not serve a kind that the policy requires.
//
// A cluster of which nobody knows what it serves is not left out.
package apiavailability
