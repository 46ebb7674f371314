// Package sharedwatch runs watches of kinds that are known at run time only, and shares each watch between its users.
//
// [Run] lists and watches the objects of a [Target] into a store until its context ends, and reports the requests that
// fail, with their errors. A [Registry] knows which user wants which watch: a watch begins with its first user and ends
// with its last. [Users] are the users of one watch, and which of them have read its current state, so that a change is
// reported once to each of them.
package sharedwatch
