// Package objectpolicy is the plugin that leaves out clusters which accept no object, or which do not accept a kind
// that the policy requires with requiredAPIs. Members report this if their administrators have created MemberPolicies.
//
// A cluster that does not report what it accepts is not left out, and neither is one that was chosen before: a Work
// reports each object that the member rejects.
package objectpolicy
