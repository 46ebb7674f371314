// Package apiavailability is a plugin that rejects clusters that do not serve a kind that the policy requires.
//
// A cluster is not rejected if it does not report its served kinds, or if it was chosen before.
package apiavailability
