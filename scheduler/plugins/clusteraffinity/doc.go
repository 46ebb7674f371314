// Package clusteraffinity is the plugin that matches clusters with the terms of a policy: those that match none of the
// required terms are left out, and the preferred terms give the others their scores.
//
// All that a term asks for must hold, and one required term is enough. A term can ask for labels, which this package
// knows, and for whatever else its [Matcher]s know: packages propertyaffinity and celaffinity have one each.
//
// A cluster's score is the sum of the weights of the preferred terms that it matches, in proportion to what it could
// be: MaxScore if it matches all with a positive weight and none with a negative one. So it does not depend on which
// other clusters there are, and does not change when one comes or goes.
package clusteraffinity
