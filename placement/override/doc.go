// Package override says what one cluster gets of a set of objects. It is pure: no client, no clock.
//
// Objects are what all clusters get. [v1alpha1.Overrides] say where some get something else: rules with the clusters
// and the objects that they are for, which patch these objects or keep them away. Labels and expressions mean what they
// mean in a policy; a cluster that an expression has no answer for is not selected. [New] makes a [Plan] of both, once;
// [Plan.For] says what that is for a cluster, for thousands of them.
//
// On each object the rules are carried out in their order, so that the later of two that say something else wins. In a
// rule the JSON patch comes before the merge patch. What one rule deletes no later one brings back. Whether a rule is
// for an object does not depend on the rules before it, since none can change what an object is told by.
//
// If anything fails, the test of a patch as much as a label that is not there, the cluster gets an error and no
// objects: half of an override is not what the user intended. [Error] has the object, the rule and the field.
//
// # Variables
//
// A string in the value of a patch may have variables of the cluster; in an object, too, where expandManifests is set:
//
//	${muster.cluster.name}
//	${muster.cluster.labels["topology.kubernetes.io/region"]}
//	${muster.cluster.properties['example.com/cost']}
//	${muster.cluster.labels["tier"]:-standard}
//
// A name is in double or single quotes, and cannot have the same in it. What follows :- is taken where the cluster does
// not have the label or property, or has it empty, as a shell does; it may be empty, and has no braces. Without that, a
// label or property that the cluster does not have is an error, and one that is empty is empty.
//
// Only ${muster. begins a variable. All else is text, so that shell scripts, ${HOME} and $(POD_IP) stay what they are;
// and what a variable stands for is text as well: it is not looked through for variables, since clusters write their
// own properties. To have ${muster. as text write $${muster. in its place. Before {muster. two $ are one, so that
// $$${muster.cluster.name} is a $ and the name.
//
// The result is a string, never a number. Names of fields and the pointers of a patch have no variables, nor has what
// an object is told by: one object is the same on all clusters.
//
// # Limits
//
// Rules must not keep the hub busy. Besides the limits of the API, all rules and variables together may add, copy and
// shift as many bytes and items of an object as a Work may have bytes, [workv1alpha1.MaxManifestBytes], and no object
// may become larger than that, or deeper than [workv1alpha1.MaxManifestDepth].
//
// # JSON patch
//
// The operations are those of RFC 6902, to the letter: an index has no sign and no leading zeros, replace and remove
// need something there, numbers are equal if their values are. The package has its own few lines for them instead of a
// library, since an object is decoded once here for all rules and encoded once, with an error for the one operation
// that failed; what is made is bounded while it is made; and the same input must give the same bytes. Its fuzz test
// compares it with github.com/evanphx/json-patch.
package override
