// Package objectpolicy is a plugin that rejects clusters that accept no object, or do not accept a kind that the policy
// requires with requiredAPIs. Members report the accepted kinds if their administrators have created MemberPolicies.
//
// A cluster is not rejected if it does not report its accepted kinds, or if it was chosen before: the status of a Work
// reports each object that the member rejects.
package objectpolicy
