// Package deletion decides whether an object that is gone, or is being deleted, is so because a user asked for it.
// All decisions are pure functions of what was observed. What is merely absent was not deleted on request.
package deletion
