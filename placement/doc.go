// Package placement will turn a policy into decisions, and decisions into work on member clusters.
//
// So far there are its API objects, in v1alpha1 and crds, and package scheduler, which chooses; the controllers are to come.
package placement
