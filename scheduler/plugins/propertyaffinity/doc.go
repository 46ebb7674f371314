// Package propertyaffinity supports terms of a policy that select by properties of clusters. Its [Matcher] is an
// extension of package clusteraffinity.
//
// Properties are compared exactly, as quantities, semantic versions or text: 0.5 equals 500m, and v1.31.10 is after
// v1.31.9. A property may have any value. If a value is not of the type of the requirement, only its own cluster is
// rejected, with a reason that contains the value. The operator Exists accepts any value.
package propertyaffinity
