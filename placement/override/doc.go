// Package override computes the objects of one cluster from the objects of all clusters. It is pure: it uses no client
// and no clock.
//
// The input is the objects that all clusters get, and [v1alpha1.Overrides]: rules that select clusters and objects, and
// patch these objects or remove them. Label selectors and CEL expressions have the same meaning as in a policy. A
// cluster for which an expression has no result is not selected. [New] compiles objects and rules into a [Plan] once.
// [Plan.For] returns the objects of one cluster, for thousands of clusters.
//
// The rules for an object are applied in their order, so if two rules set the same field, the later one wins. Within a
// rule, the JSON patch is applied before the merge patch. An object that one rule deletes is not restored by a later
// one. The rules before a rule do not affect which objects it selects, because no rule can change the identity of an
// object.
//
// If anything fails, such as the test of a patch or a variable for a missing label, the cluster gets an error and no
// objects: a partial override is not what the user intended. [Error] names the object, the rule and the field.
//
// # Variables
//
// A string in the value of a patch may contain variables of the cluster. So may a string in an object if
// expandManifests is set:
//
//	${muster.cluster.name}
//	${muster.cluster.labels["topology.kubernetes.io/region"]}
//	${muster.cluster.properties['example.com/cost']}
//	${muster.cluster.labels["tier"]:-standard}
//
// A name is in double or single quotes, and cannot contain the same kind of quote. The default after :- is used if the
// label or property is missing or empty, as in a shell. The default may be empty, and cannot contain braces. Without a
// default, a missing label or property is an error, and an empty one is replaced by the empty string.
//
// Only ${muster. begins a variable. All other text is unchanged, including shell scripts, ${HOME} and $(POD_IP). The
// value of a variable is not expanded again, because clusters write their own properties. To write ${muster. as text,
// use $${muster. instead. Two $ before {muster. produce one, so $$${muster.cluster.name} is a $ and the name.
//
// The result is a string, never a number. Field names and the pointers of a patch cannot contain variables. Neither can
// the identity of an object: an object has the same identity on all clusters.
//
// # Limits
//
// Rules must not overload the hub. In addition to the limits of the API, all rules and variables for an object together
// may add, copy and shift at most as many bytes and items as a Work may have bytes, [workv1alpha1.MaxManifestBytes]. No
// object may become larger than that, or deeper than [workv1alpha1.MaxManifestDepth].
//
// # JSON patch
//
// The operations strictly follow RFC 6902: an index has no sign and no leading zeros, replace and remove require an
// existing value, and numbers are equal if their values are equal. The package implements them instead of using a
// library for three reasons. An object is decoded and encoded once for all rules, with an error for the single
// operation that failed. The size of the result is limited during the computation. The same input always results in the
// same bytes. A fuzz test compares the package with github.com/evanphx/json-patch.
package override
