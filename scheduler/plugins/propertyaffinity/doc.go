// Package propertyaffinity lets the terms of a policy ask for the properties of clusters: [Matcher] is for package
// clusteraffinity.
//
// Properties are compared as quantities, semantic versions or text, exactly: 0.5 equals 500m, and v1.31.10 is after
// v1.31.9. Who reports a property may write anything. A value that is not what the requirement compares with refuses
// its own cluster, with a reason that has the value in it, and nothing else: of all operators only Exists is content
// with it.
package propertyaffinity
