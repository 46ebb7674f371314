// Package deletion decides whether a missing object, or one that is being deleted, was deleted because a user requested
// it. All decisions are pure functions of the observed state. Absence alone is not a request.
package deletion
