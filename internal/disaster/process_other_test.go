//go:build !unix

package disaster

// runAsReplica returns false: processes of a hub can be suspended on Unix only.
func runAsReplica() bool { return false }
