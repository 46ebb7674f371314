//go:build !unix

package disaster

// runsReplica is false: processes of a hub can be suspended on Unix only.
func runsReplica() bool { return false }
