// Package clusteraffinity is a plugin that matches clusters with the terms of a policy. It rejects clusters that match
// none of the required terms, and scores the others by the preferred terms.
//
// A cluster matches a term if it meets all requirements of the term. One matching required term is sufficient. This
// package implements label requirements. Each [Matcher] implements a further kind of requirement: see packages
// propertyaffinity and celaffinity.
//
// A cluster's score is the sum of the weights of the preferred terms that it matches, scaled to the range of possible
// sums: a cluster gets MaxScore if it matches all terms with a positive weight and none with a negative weight. The
// score is independent of other clusters, and does not change when another cluster joins or leaves.
package clusteraffinity
