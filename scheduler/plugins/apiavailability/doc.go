// Package apiavailability is the plugin that leaves out clusters which do not serve a kind that the policy requires.
//
// A cluster that does not report what it serves is not left out, and neither is one that was chosen before.
package apiavailability
